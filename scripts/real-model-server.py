"""Serves a GGUF file with llama.cpp's own server on loopback: real-model-server.py FILE PORT"""

import sys
import time

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostname = "127.0.0.1"
params.port = int(sys.argv[2])
params.n_ctx = 8192
params.n_parallel = 1
params.use_jinja = True
# More threads wait for each other longer than they compute.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print("READY", server.listening_address, flush=True)
while True:
    time.sleep(3600)
