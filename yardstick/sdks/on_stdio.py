"""Gives its stdin, stdout and stderr to a server that is forked for it, and ends when that does.   on_stdio.py SOCKET"""
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"!"], [0, 1, 2])
    # The pipes are the server's now: one that is still open here would keep it from seeing the other's end.
    for file in (sys.stdin, sys.stdout):
        file.close()
    server.recv(1)
