"""Proxy: the configuration of nginx in front of a Triton server: it lets the calls of clients through, no others."""

# The text works with nginx 1.18 and later, as Ubuntu's and Debian's package nginx-core has it; nginx-light of Ubuntu
# 22.04 lacks limit_conn and limit_req. nginx writes below /tmp only, so a user without root starts it in a container
# whose file system can only be read: nginx -e stderr -c FILE -g 'daemon off;' (nginx 1.18 has no -e, and needs none).

from __future__ import annotations

_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_TEXT = r"""pid /tmp/nginx.pid;
error_log stderr;
worker_rlimit_nofile 8192;
worker_shutdown_timeout 40s;   # a stream that is still open then is cut
events { worker_connections 4096; }
http {
  access_log off;
@TEMPORARY@
  map $uri $counted { "~^/v2/health/" ""; default $server_port; }  # a full server is ready, and a probe learns it
  map $counted $client { "" ""; default $binary_remote_addr$server_port; }
  limit_conn_zone $counted zone=all:1m;  # one count for HTTP, one for gRPC
  limit_conn_zone $client zone=client:10m;
  limit_req_zone $client zone=rate:10m rate=@RATE@r/s;
  limit_conn all @ALL@;          # requests at once; more: 503
  limit_conn client @CLIENT@;         # of one address, also those whose client hung up
  limit_req zone=rate burst=@BURST@ nodelay;  # of one address in a second, also those that it cancels
  client_max_body_size @BODY@;   # larger: 413. JSON of 96 KiB cannot be nested 100,000 deep
  client_body_buffer_size 128k;
  client_header_timeout 10s;   # a client that sends slowly: 408
  client_body_timeout 10s;
  map $http_content_encoding $coded { "" ""; identity ""; default 1; }
  map $http_grpc_encoding $coded_message { "" ""; identity ""; default 1; }
  map $uri $known {            # what clients call: no loading of models, no shared memory, no settings
    /v2 1;
    /v2/models/stats 1;
    "~^/v2/health/(live|ready)\z" 1;
    "~^/v2/models/@MODELS@(/versions/\d+)?(/(infer|generate|generate_stream|ready|config|stats))?\z" 1;
    "~^/inference\.GRPCInferenceService/Server(Live|Ready|Metadata)\z" 1;
    "~^/inference\.GRPCInferenceService/Model(Ready|Metadata|Config|Statistics|Infer|StreamInfer)\z" 1;
    /grpc.health.v1.Health/Check 1;
  }
  server {
    listen @HTTP@;
    if ($known = "") { return 404; }
    if ($coded) { return 415; }      # the limit would count compressed bytes
    if (-f /tmp/draining) { return 421; }
    proxy_pass_request_headers off;  # `Accept-Encoding: gzip;q=1e999` ends Triton 2.51; it needs one header:
    proxy_set_header Inference-Header-Content-Length $http_inference_header_content_length;
    proxy_http_version 1.1;
    proxy_buffering off;             # pieces of a generated text arrive one by one
    proxy_ignore_client_abort on;    # Triton works on: the request counts until it is answered
    proxy_read_timeout 30s;          # a server that does not answer: 504
    location / {
      limit_except GET POST { deny all; }
      proxy_pass http://@TRITON_HTTP@$uri;  # the path that was looked at, not the one that was sent
    }
    error_page 421 = @draining;
    location @draining {             # before nginx ends: the client connects anew, and so to another server
      keepalive_timeout 0;
      limit_except GET POST { deny all; }
      proxy_pass http://@TRITON_HTTP@$uri;
    }
  }
  server {                     # leave it out for strangers, unless Triton is of 25.06 or later: see the page
    listen @GRPC@ http2;
    if ($known = "") { return 404; }
    if ($coded_message) { return 415; }
    grpc_set_header grpc-encoding "";
    grpc_read_timeout 30s;
    location / { grpc_pass grpc://@TRITON_GRPC@; }
    location /inference.GRPCInferenceService/ModelStreamInfer {
      client_body_timeout 10m;       # an open stream may be silent, on both sides
      grpc_read_timeout 10m;
      grpc_pass grpc://@TRITON_GRPC@;
    }
    error_page 415 = @compressed;    # as gRPC's clients understand it: UNIMPLEMENTED
    location @compressed {
      default_type application/grpc;
      add_header grpc-status 12 always;
      add_header grpc-message "415: compressed messages are not taken" always;
      return 204;
    }
  }
}
"""


def nginx(
    *,
    http: str = "8080",
    grpc: str = "8081",
    triton_http: str = "127.0.0.1:8000",
    triton_grpc: str = "127.0.0.1:8001",
    of_all: int = 200,
    of_one_client: int = 8,
    rate: int = 500,
    body: str = "96k",
    models: str = r"[\w.-]+",
) -> str:
    """Return the text of nginx.conf.

    `http` and `grpc` are where nginx listens: PORT or ADDRESS:PORT. `triton_http` and `triton_grpc` are ADDRESS:PORT of
    the server. `of_all` and `of_one_client` are how many requests of all clients and of one address may be in work at
    once, for HTTP and for gRPC each; `rate` is how many requests one address may send in a second. `body` is the
    largest body, as nginx writes sizes. `models` is the regular expression of the models that clients of HTTP may call.
    """
    folders = [f"  {each}_temp_path /tmp/nginx_{each};" for each in _TEMPORARY]
    values = {
        "TEMPORARY": "\n".join(folders), "ALL": str(of_all), "CLIENT": str(of_one_client), "RATE": str(rate),
        "BURST": str(rate // 10), "MODELS": models,
        "BODY": body, "HTTP": http, "GRPC": grpc, "TRITON_HTTP": triton_http, "TRITON_GRPC": triton_grpc,
    }  # fmt: skip
    text = _TEXT
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
