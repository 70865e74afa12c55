from __future__ import annotations

import asyncio
import os
import threading

import pytest

from tests.sync.served import run_program
from weirpool import LocalError
from weirpool.sync.loop import loop_thread, run


async def _seven() -> int:
    await asyncio.sleep(0)
    return 7


def test_run_returns_the_result_also_within_a_running_loop() -> None:
    async def main() -> int:
        return run(_seven())

    assert run(_seven()) == asyncio.run(main()) == 7


def test_all_threads_share_one_loop() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(run(loop()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {run(loop())}


def test_timeout_cancels_the_coroutine() -> None:
    canceled = threading.Event()

    async def never() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            canceled.set()

    with pytest.raises(TimeoutError, match=r"the coroutine took more than 0\.01 s"):
        run(never(), timeout=0.01)
    assert canceled.wait(10)


def test_own_timeout_error_of_a_coroutine_is_raised_unchanged() -> None:
    async def fails() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        run(fails(), timeout=10)


def test_use_within_the_background_loop_is_refused() -> None:
    async def handler() -> int:
        return run(_seven())

    with pytest.raises(LocalError, match="use the asyncio API there"):
        run(handler())


def test_post_and_abandon_do_not_wait() -> None:
    done = threading.Event()

    async def close() -> None:
        done.set()

    loop_thread().abandon(close)
    assert done.wait(10)


def test_interrupt_cancels_the_request_that_waits() -> None:
    result = run_program("""
        import asyncio, signal
        service = weirpool.Service()
        canceled = threading.Event()
        @service.call("interrupt")
        async def interrupt(request):
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                canceled.set()
        with weirpool.sync.serve(service, "rsocket+memory://x"), weirpool.sync.connect("rsocket+memory://x") as peer:
            try:
                peer.call("interrupt")
            except KeyboardInterrupt:
                print("interrupted", canceled.wait(10))
    """)
    assert (result.stdout, result.stderr) == ("interrupted True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_child_has_a_loop_of_its_own() -> None:
    result = run_program("""
        server = weirpool.sync.serve(service_of(Watch()), "rsocket+tcp://127.0.0.1:0")
        peer = weirpool.sync.connect(server.urls[0])
        stream = peer.stream("silence").__enter__()
        child = os.fork()
        if not child:
            for attempt in (lambda: peer.call("echo"), lambda: list(stream), lambda: peer.outstanding):
                try:
                    attempt()
                except weirpool.LocalError as error:
                    print(error)
            peer.close()
            stream.__exit__(None, None, None)
            server.close()
            with weirpool.sync.connect(server.urls[0]) as own:
                print(own.call("echo", b"of the child").data, flush=True)
            del peer, stream, server
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        print(peer.call("echo", b"of the parent").data)
        stream.__exit__(None, None, None)
        peer.close()
        server.close()
    """)
    assert result.stderr == ""
    *refused, child, parent = result.stdout.splitlines()
    assert (
        refused
        == ["weirpool.sync: it belongs to the process that was forked; make a new connection in this process"] * 3
    )
    assert (child, parent) == ("b'of the child'", "b'of the parent'")


def test_pool_of_forked_processes_makes_connections() -> None:
    result = run_program("""
        import multiprocessing
        def work(number):
            with weirpool.sync.connect(url) as peer:
                return peer.call("echo", b"%d" % number).data
        with weirpool.sync.serve(service_of(Watch()), "rsocket+tcp://127.0.0.1:0") as server:
            url = server.urls[0]
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(work, range(4)))
    """)
    assert (result.stdout, result.stderr) == ("[b'0', b'1', b'2', b'3']\n", "")


EXITS = {
    "open stream": "next(iter(stream))",
    "stream in a block": "stream.__enter__()",
    "waiting thread": "threading.Thread(target=lambda: peer.call('never'), daemon=True).start(); watch.began.wait()",
    "blocked source": """if True:
        started = threading.Event()
        def blocked():
            started.set()
            threading.Event().wait()
            yield b""
        threading.Thread(target=lambda: peer.upload("sum", b"", blocked()), daemon=True).start()
        started.wait()""",
    "error": "raise SystemExit(0)",
}


@pytest.mark.parametrize("what", EXITS)
def test_interpreter_exits_without_a_word_with(what: str) -> None:
    result = run_program(f"""
watch = Watch()
server = weirpool.sync.serve(service_of(watch), "rsocket+tcp://127.0.0.1:0")
peer = weirpool.sync.connect(server.urls[0])
stream = peer.stream("silence")
{EXITS[what]}
""")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_thread_goes_on_after_the_main_thread_and_exit_handlers_may_call() -> None:
    result = run_program("""
        import atexit
        server = weirpool.sync.serve(service_of(Watch()), "rsocket+tcp://127.0.0.1:0")
        peer = weirpool.sync.connect(server.urls[0])
        def later():
            threading.main_thread().join()
            with weirpool.sync.connect(server.urls[0]) as own:
                print(own.call("echo", b"thread").data, flush=True)
        threading.Thread(target=later).start()
        @atexit.register
        def last():
            print(peer.call("echo", b"handler").data, flush=True)
    """)
    assert (result.stdout, result.stderr) == ("b'thread'\nb'handler'\n", "")


def test_use_after_the_exit_is_refused_with_a_reason() -> None:
    result = run_program("""
        import atexit
        from weirpool.sync import loop
        server = weirpool.sync.serve(service_of(Watch()), "rsocket+memory://x")
        peer = weirpool.sync.connect(server.urls[0])
        loop.loop_thread().end()
        try:
            peer.call("echo")
        except weirpool.LocalError as error:
            print(error)
        peer.close()
    """)
    assert (result.stdout, result.stderr) == (
        "weirpool.sync: the interpreter is exiting, so the connection is closed; use it before\n",
        "",
    )
