"""A server of embeddings that speaks like OpenAI's, over the model that the package wordllama has in it.

Reads the weights and the tokenizer from the package's own files: the package itself would ask a server for them.
Says its address on stdout, and stops when stdin ends.
"""

import importlib.util
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from safetensors.numpy import load_file
from tokenizers import Tokenizer

HOME = Path(importlib.util.find_spec("wordllama").submodule_search_locations[0])
WEIGHTS = next(iter(load_file(HOME / "weights" / "l2_supercat_256.safetensors").values())).astype("float32")
TOKENIZER = Tokenizer.from_file(str(HOME / "tokenizers" / "l2_supercat_tokenizer_config.json"))


def vector(text):
    """The mean of the vectors of a text's tokens: what this kind of model is."""
    return WEIGHTS[TOKENIZER.encode(text, add_special_tokens=False).ids].mean(axis=0).tolist()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        data = [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(asked["input"])]
        body = json.dumps({"object": "list", "data": data, "model": "l2_supercat_256"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
sys.stdin.read()
