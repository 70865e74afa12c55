"""A child that a program forks while it has connections leaves those of the program alone."""

from __future__ import annotations

import pytest

from tests.sync.served import run_program

PROGRAM = """
    import asyncio, multiprocessing

    def ended(child):
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def fork_within_the_loop():
        child = os.fork()
        if not child:
            os._exit(0)
        ended(child)

    def fork_by_multiprocessing():
        child = multiprocessing.get_context("fork").Process(target=int)
        child.start()
        child.join()
        assert child.exitcode == 0

    async def main(forking):
        async with weirpool.serve(service_of(Watch()), {url!r}) as server:
            async with weirpool.connect(server.urls[0]) as peer:
                assert (await peer.call("echo", b"before")).data == b"before"
                await forking()
                async with asyncio.timeout(30):
                    print((await peer.call("echo", b"the same connection")).data.decode())
                    async with weirpool.connect(server.urls[0]) as another:
                        print((await another.call("echo", b"another one")).data.decode())

    async def within():
        fork_within_the_loop()
        fork_by_multiprocessing()

    # A thread that runs no loop forks, and its child leaves as programs do.
    async def beside():
        done = asyncio.Event()
        waiting.append((asyncio.get_running_loop(), done))
        ready.set()
        await done.wait()

    waiting, ready = [], threading.Event()
    asyncio.run(main(within))
    thread = threading.Thread(target=lambda: asyncio.run(main(beside)), daemon=True)
    thread.start()
    ready.wait()
    child = os.fork()
    if not child:
        sys.exit()
    ended(child)
    loop, done = waiting[0]
    loop.call_soon_threadsafe(done.set)
    thread.join()
"""


@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_a_forked_child_ends_without_harm(transport: str) -> None:
    result = run_program(PROGRAM.format(url=f"rsocket+{transport}://127.0.0.1:0"))
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["the same connection", "another one"] * 2
