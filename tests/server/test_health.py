"""Health: the server that answers must be the server that was started."""

import http.server
import threading

from engine.server import health, ports
from engine.server.installation import ServerSetup, options
from engine.server.repository_needs import Needs


class Another(http.server.BaseHTTPRequestHandler):
    """The HTTP server of another program."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"name":"triton"}')

    def log_message(self, *_):
        pass


def test_another_server_on_the_port_is_not_taken_for_ours(bare):
    with http.server.HTTPServer(("127.0.0.1", 0), Another) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        assert health.is_there(address, "triton")
        assert not health.is_there(address, "recipe_0123")
        server.shutdown()
    assert not health.is_there(address, "triton")
    place = ServerSetup(bare, ports.free(), bare, "recipe_0123", Needs())
    assert "--id=recipe_0123" in options(place, "models", place.ports)
