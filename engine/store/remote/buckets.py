"""A bucket or a folder as a store of obstore: the user's variables become its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from obstore import exceptions
from obstore.store import LocalStore, from_url

_PREFIXES = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
_WRITE = "RECIPE_WRITE_"
_ENDPOINTS = ("aws_endpoint_url", "aws_endpoint", "azure_storage_endpoint", "azure_endpoint", "google_base_url")
_CLIENT = (
    "allow_http", "allow_invalid_certificates", "proxy_url", "proxy_ca_certificate", "proxy_excludes",
    "root_certificate", "user_agent", "timeout", "connect_timeout", "read_timeout", "default_content_type",
    "http1_only", "http2_only", "http2_keep_alive_interval", "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle", "http2_max_frame_size", "pool_idle_timeout", "pool_max_idle_per_host",
    "randomize_addresses",
)  # fmt: skip
"""Settings of obstore's HTTP client. Among the settings of a bucket they end obstore with a panic."""
_CONNECT = "3s"
_LONGEST = "3600s"
"""The limit of obstore for one request. `pace` ends slow requests much earlier."""


def opened(url: str, *, environ: Mapping[str, str], writes: bool) -> Any:
    """Return the store of obstore for a URL. Raises the errors of obstore, and ValueError for a wrong setting.

    With `writes`, a variable that begins with RECIPE_WRITE_ replaces the one without this prefix.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(unquote(parts.path), mkdir=True)
    config = _config(_PREFIXES[parts.scheme], environ, writes=writes)
    client = {name: config.pop(f"{_PREFIXES[parts.scheme].lower()}{name}", "") for name in _CLIENT}
    options: dict[str, Any] = {name: value for name, value in client.items() if value}
    options.setdefault("allow_http", any(config.get(name, "").startswith("http://") for name in _ENDPOINTS))
    options |= {"connect_timeout": _CONNECT, "timeout": _LONGEST}
    if parts.scheme == "s3" and "aws_access_key_id" not in config and not any("role" in name for name in config):
        config.setdefault("aws_skip_signature", "true")
    return _from_url(url, config, options)


def _config(prefix: str, environ: Mapping[str, str], *, writes: bool) -> dict[str, str]:
    """Return the settings in the variables of a cloud. An empty variable is an unset one.

    A CI sets a secret that a pull request does not get to "".
    """
    config = {name.lower(): value for name, value in environ.items() if value and name.startswith(prefix)}
    if writes:
        own = {name.removeprefix(_WRITE): value for name, value in environ.items() if name.startswith(_WRITE)}
        config |= {name.lower(): value for name, value in own.items() if value and name.startswith(prefix)}
    config = {name: value.strip() for name, value in config.items()}
    for name, value in config.items():  # obstore ends with a panic where it makes a header or a URL of such a value
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the variable {name.upper()} must be one line of ASCII characters")
        if name in _ENDPOINTS and not _has_host(value):
            raise ValueError(f"the variable {name.upper()} must be a URL like https://HOST")
    return config


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and " " not in parts.netloc
    except ValueError:
        return False


def _from_url(url: str, config: dict[str, str], options: Any) -> Any:
    """Open a bucket. Variables of other programs, such as AWS_PAGER, are left out when obstore does not know them."""
    while True:
        settings: Any = config
        try:
            # The attempts are counted by `engine.store.remote.attempts`, which knows how long a build may wait.
            return from_url(url, config=settings, client_options=options, retry_config={"max_retries": 0})
        except exceptions.UnknownConfigurationKeyError as error:
            unknown = [name for name in config if f"'{name}'" in str(error)]
            if not unknown:
                raise
            for name in unknown:
                del config[name]
