"""What asks a server: any that speaks the KServe v2 protocol, over HTTP or gRPC."""
