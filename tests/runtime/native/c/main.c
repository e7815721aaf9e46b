/* Tests of the runtime's parts, as one program with all of it: what is private can be called, too.
 * The test to run is the argument. */
#include "ownership/runtime.c"

#include "checks.h"

#include "pieces.c"

#include "memo.c"
#include "partition.c"
#include "strides.c"

static const struct {
    const char *name;
    void (*run)(void);
} TESTS[] = {
    {"pieces", test_pieces},
    {"merging", test_merging},
    {"one owner", test_one_owner},
    {"even parts", test_even_parts},
    {"large spaces", test_large_spaces},
    {"strides", test_strides},
    {"memo: again", test_what_comes_again_is_found},
    {"memo: wide pieces", test_wide_pieces_are_found_again},
    {"memo: oldest", test_the_oldest_is_replaced},
    {"memo: rarely", test_what_never_comes_again_is_kept_rarely},
    {"memo: the same", test_the_same_with_and_without},
};

int main(int count, char **arguments)
{
    for (size_t k = 0; k < sizeof TESTS / sizeof *TESTS; k++) {
        if (count < 2) puts(TESTS[k].name); /* the list of them */
        else if (!strcmp(arguments[1], TESTS[k].name)) {
            TESTS[k].run();
            reset_run();
            return 0;
        }
    }
    return count > 1;
}
