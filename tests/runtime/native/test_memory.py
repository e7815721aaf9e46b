"""memory.c: what a program gives back is there when it asks again, and nobody else has it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from subprocess import run

import pytest

from avial_lab.core.toolchain import tool

ASKING = """
#include "memory.c"
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 3 << 20 };

static void comes_back(void)
{
    char *first = avial_take(BLOCK), *second = avial_take(BLOCK);
    assert(first && second && first != second && (uintptr_t)first % 64 == 0);
    memset(first, 1, BLOCK), memset(second, 2, BLOCK);
    avial_give(first);
    assert(second[BLOCK - 1] == 2);
    assert(avial_take(BLOCK / 2) == first); /* half of it is used at least */
    avial_give(first);
    char *less = avial_take(BLOCK / 2 - 1), *more = avial_take(BLOCK + 1);
    assert(less != first && more != first);
    assert(avial_take(BLOCK) == first);
    avial_give(first), avial_give(second), avial_give(less), avial_give(more), avial_give(NULL);
}

static void the_smallest_that_fits(void)
{
    char *large = avial_take(5 << 20), *small = avial_take(4 << 20);
    avial_give(large), avial_give(small);
    assert(avial_take(4 << 20) == small);
    assert(avial_take(4 << 20) == large);
    avial_give(large), avial_give(small);
}

static void few_bytes_are_mallocs(void)
{
    void *few = avial_take(LEAST - 1);
    assert(few && !entry_of(few));
    avial_give(few);
}

static void no_more_is_kept(void)
{
    char *each[2 * BLOCKS];
    for (int k = 0; k < 2 * BLOCKS; k++) memset(each[k] = avial_take(1 << 20), k, 1 << 20);
    for (int k = 0; k < 2 * BLOCKS; k++) {
        assert(each[k][0] == (char)k && each[k][(1 << 20) - 1] == (char)k);
        avial_give(each[k]);
    }
    assert(kept <= MOST_KEPT);
    size_t found = 0;
    for (int k = 0; k < BLOCKS; k++) found += blocks[k].memory ? blocks[k].bytes : 0;
    assert(found == kept && kept > MOST_KEPT / 2);
    void *huge = avial_take((size_t)MOST_KEPT + 1);
    avial_give(huge);
    assert(!entry_of(huge));
}

static void what_is_dropped_is_gone(void)
{
    char *mine = avial_take(BLOCK);
    avial_give(avial_take(2 * BLOCK));
    avial_drop();
    assert(kept == 0 && entry_of(mine));
    memset(mine, 3, BLOCK);
    avial_give(mine);
    avial_drop();
    for (int k = 0; k < BLOCKS; k++) assert(!blocks[k].memory);
}

static void *its_own(void *mark)
{
    for (int k = 0; k < 2000; k++) {
        size_t bytes = LEAST + 64 * (size_t)(k % 7);
        char *memory = avial_take(bytes);
        memory[0] = memory[bytes - 1] = *(char *)mark;
        assert(memory[0] == *(char *)mark && memory[bytes - 1] == *(char *)mark);
        avial_give(memory);
    }
    return NULL;
}

static void threads_have_their_own(void)
{
    pthread_t threads[4];
    char marks[] = {1, 2, 3, 4};
    for (int k = 0; k < 4; k++) pthread_create(threads + k, NULL, its_own, marks + k);
    for (int k = 0; k < 4; k++) pthread_join(threads[k], NULL);
    for (int k = 0; k < BLOCKS; k++) assert(!blocks[k].memory || !blocks[k].taken);
}

int main(void)
{
    comes_back();
    the_smallest_that_fits();
    few_bytes_are_mallocs();
    no_more_is_kept();
    threads_have_their_own();
    what_is_dropped_is_gone();
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("watched", ["address,undefined", "thread"])
def test_memory_is_kept_for_who_asks_next(tmp_path: Path, watched: str) -> None:
    flags = ["-O1", "-g", "-Wall", "-Werror", f"-fsanitize={watched}", "-pthread"]
    if not builds(tmp_path, "nothing", "int main(void) { return 0; }", flags):
        pytest.skip(f"the compiler has no -fsanitize={watched}")
    assert builds(
        tmp_path, "asking", ASKING, [*flags, "-I", str(resources.files("avial_lab.runtime.native"))]
    )
    ran = run([str(tmp_path / "asking")], capture_output=True, text=True, check=False, env=KEPT)
    assert ran.returncode == 0, ran.stderr


KEPT = {"ASAN_OPTIONS": "detect_leaks=0"}
"""What is kept is no leak."""


def builds(folder: Path, name: str, text: str, flags: list[str]) -> bool:
    """Whether the program in C was built; what the compiler said is in the test's output."""
    (folder / f"{name}.c").write_text(text)
    command = [str(tool("cc")), *flags, "-o", str(folder / name), str(folder / f"{name}.c")]
    return run(command, check=False).returncode == 0
