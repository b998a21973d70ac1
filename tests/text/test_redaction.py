"""Secrets in texts: each in every form that the program, a library or a server writes it."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest

from engine.text import redaction
from engine.text.redaction import redacted, redacted_bytes

_SECRETS = {
    "plain": "open-sesame-1",
    "of AWS": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEX=",
    "with quotes": 'it\'s "open" <now> & here',
    "not ASCII": "Schlüssel-für-alle",
    "with a tab and a backslash": "tab\there\\there",
}
_FORMS = {
    "itself": str,
    "in a URL": lambda secret: quote(secret, safe=""),
    "in a path": quote,
    "in a form": quote_plus,
    "in small digits": lambda secret: re.sub("%..", lambda code: code[0].lower(), quote(secret, safe="")),
    "in JSON": json.dumps,
    "in JSON with all letters": lambda secret: json.dumps(secret, ensure_ascii=False),
    "in Python": repr,
    "in bytes of Python": lambda secret: repr(secret.encode()),
    "in HTML": html.escape,
    "in HTML with numbers": lambda secret: html.escape(secret).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in base64 of URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "in a URL in JSON": lambda secret: json.dumps({"url": quote(secret)}),
    "in JSON in a URL": lambda secret: quote(json.dumps(secret), safe=""),
    "in Python in JSON": lambda secret: json.dumps(repr(secret)),
}


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("secret", _SECRETS.values(), ids=_SECRETS)
def test_the_value_of_a_secret_variable_is_replaced_in_every_form(secret, form):
    written = _FORMS[form](secret)
    clean = redacted(f"before {written} after", {"TEAM_TOKEN": secret, "PATH": "/usr/bin"})
    assert written.strip("'\"") not in clean
    assert "[redacted]" in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")


@pytest.mark.parametrize("login", ["user:pass#word", "user:pa/ss/word", "us:er@x:pass?word", "user:pass%23word"])
@pytest.mark.parametrize("name", ["RECIPE_REMOTE", "AWS_ENDPOINT_URL", "HTTPS_PROXY"])
def test_a_password_in_a_url_is_replaced_whatever_its_characters(login, name):
    environment = {name: f"https://{login}@host:8080/x"}
    token = base64.b64encode(login.replace("%23", "#").encode()).decode()
    password = login.partition(":")[2]
    clean = redacted(f"GET https://{login}@host/x, Basic {token}, {password!r}, {quote(password)}", environment)
    assert "word" not in clean
    assert token not in clean


def test_the_secrets_of_the_command_line_are_learned(monkeypatch):
    monkeypatch.setattr(redaction, "_learned", set())
    redaction.learn(["--remote", "https://me:op#en-door@host/x"])
    assert redacted("the password op#en-door", {}) == "the password [redacted]"


def test_each_line_of_a_secret_and_a_signature_in_a_query_are_replaced():
    environment = {"RECIPE_REMOTE_TOKEN": "first-half\nsecond-half\r\n"}
    assert redacted("got b'first-half', then second-half", environment) == "got b'[redacted]', then [redacted]"
    environment = {"RECIPE_REMOTE": "https://host/x?sp=rl&sig=abc%2Fdef%3Dghi"}
    assert redacted("sig abc/def=ghi or abc%2Fdef%3Dghi", environment) == "sig [redacted] or [redacted]"


def test_logs_show_no_secrets_and_bytes_that_are_no_text_stay():
    assert redacted_bytes(b"\xff open-sesame-1 \xfe", {"MY_TOKEN": "open-sesame-1"}) == b"\xff [redacted] \xfe"
    text = b"token abcdefgh1234 and hf_" + b"A" * 30 + b" at https://me:pass@host/x, PATH /usr/bin"
    clean = redacted_bytes(text, {"HF_TOKEN": "abcdefgh1234", "PATH": "/usr/bin"})
    assert clean == b"token [redacted] and [redacted] at https://[redacted]@host/x, PATH /usr/bin"


@pytest.mark.parametrize(
    "environment",
    [
        {"API_KEY": "short"},
        {"RECIPE_SIGNING_KEY": "/no/such/key"},
        {"TLS_KEY": "/etc/hosts"},
        {"HF_TOKEN_PATH": "/home/ada/token"},
        {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE"},
        {"RECIPE_REMOTE": "s3://bucket/prefix@v1"},
        {"TOKENIZERS_PARALLELISM": "false"},
    ],
)
def test_what_is_no_secret_stays(environment):
    [value] = environment.values()
    text = f"{value} and \udcff bytes that are no text"
    assert redacted(text, environment) == text


@pytest.mark.parametrize("word", ["null", "true", "false", "built"])
def test_an_ordinary_word_as_a_password_stays_elsewhere(word):
    environment = {"HTTP_PROXY": f"http://user:{word}@host:1"}
    assert redacted(f'{{"a": {word}}}', environment) == f'{{"a": {word}}}'
    assert word not in redacted(environment["HTTP_PROXY"], environment)
