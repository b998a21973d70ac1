"""Client: requests and load for any server that speaks the KServe v2 protocol, over HTTP or gRPC."""
