"""Runs the command `ceph` without starting Python and loading its modules for each call.

    forked_ceph.py serve SOCKET CEPH     loads the program CEPH once, and forks a process for each
                                         call
    forked_ceph.py call SOCKET CEPH WORD...
                                         runs `CEPH WORD...` in such a process, with the files, the
                                         environment and the directory of this one

Each call connects to its cluster anew, as `ceph` does. Without a server, a call runs `ceph` itself.
The server ends with the process that started it.
"""

import os
import socket
import sys


def call(path, ceph, words):
    """Returns the exit status of `ceph` with these words."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        os.execv(ceph, [ceph, *words])
    fields = [os.getcwdb(), str(len(words)).encode(), *map(os.fsencode, words)]
    fields += [name + b"=" + value for name, value in os.environb.items()]
    request = b"\0".join(fields)
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(request)
    status = connection.recv(1)
    return status[0] if status else 1


def serve(path, ceph):
    """Accepts calls until it is killed."""
    import signal

    parent = os.getppid()
    # A Python or a kernel without these cannot serve: the calls run `ceph` themselves.
    os.close(os.pidfd_open(os.getpid()))
    socket.recv_fds, socket.send_fds
    with open(ceph, encoding="utf-8") as file:
        code = compile(file.read(), ceph, "exec")
    # This loads the modules: only `__main__` runs a command.
    exec(code, {"__name__": "loaded", "__file__": ceph})
    # The kernel reaps the processes of calls.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    listener.settimeout(1)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except socket.timeout:
            continue
        connection.settimeout(None)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            answer(connection, code, ceph)
            os._exit(0)
        connection.close()


def answer(connection, code, ceph):
    """Runs the command of a call, and sends its exit status."""
    import select
    import signal

    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    size = int.from_bytes(head, "big")
    request = b""
    while len(request) < size:
        part = connection.recv(size - len(request))
        if not part:
            return
        request += part
    process = os.fork()
    if process == 0:
        connection.close()
        run(code, ceph, request, files)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(process)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:
        # The caller was killed, for instance by `timeout`.
        os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        connection.sendall(bytes([status if status >= 0 else 128 - status]))
    except OSError:
        pass


def run(code, ceph, request, files):
    """Runs the command in this process, and ends the process."""
    directory, count, *rest = request.split(b"\0")
    words, environment = rest[: int(count)], rest[int(count) :]
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(directory)
    os.environb.clear()
    os.environb.update(pair.split(b"=", 1) for pair in environment)
    sys.argv = [ceph, *map(os.fsdecode, words)]
    status = 1
    try:
        exec(code, {"__name__": "__main__", "__file__": ceph})
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        else:
            status = end.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    # A caller that has closed its end of the output does not change the status.
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass
    os._exit(status & 255)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3])
    else:
        sys.exit(call(sys.argv[2], sys.argv[3], sys.argv[4:]))
