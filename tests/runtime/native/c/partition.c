/* Every iteration has exactly one owner, whatever the layout; blocks are as even as can be. */

enum { MOST_ITERATIONS = 40 };

static i64 owner[MOST_ITERATIONS][MOST_ITERATIONS], step_of_test[2];

static void take_range(i64 rank, const i64 *range, const void *bounds)
{
    const i64 *lower = bounds;
    CHECK(range[0] < range[1] && range[2] < range[3]);
    for (i64 d = 0; d < 2; d++) { /* from an iteration to one past an iteration */
        CHECK((range[2 * d] - lower[d]) % step_of_test[d] == 0);
        CHECK((range[2 * d + 1] - 1 - lower[d]) % step_of_test[d] == 0);
    }
    for (i64 i = range[0]; i < range[1]; i += step_of_test[0])
        for (i64 j = range[2]; j < range[3]; j += step_of_test[1]) {
            i64 *of = &owner[(i - lower[0]) / step_of_test[0]][(j - lower[1]) / step_of_test[1]];
            CHECK(*of < 0);
            *of = rank;
        }
}

static void random_space(i64 *space)
{
    i64 lower = random_in(-20, 20), step = random_in(1, 4);
    space[SPACE_LOWER] = lower;
    space[SPACE_UPPER] = lower + random_in(0, MOST_ITERATIONS * step);
    space[SPACE_STEP] = step;
    space[SPACE_OFFSET] = random_in(-25, 25);
    space[SPACE_EXTENT] = random_in(0, 3) ? random_in(1, 60) : 0;
}

static i64 iterations_of(const i64 *space)
{
    i64 size = space[SPACE_UPPER] - space[SPACE_LOWER];
    return size <= 0 ? 0 : (size + space[SPACE_STEP] - 1) / space[SPACE_STEP];
}

static void random_layout(i64 ranks)
{
    i64 chosen[20], weights[7], n = random_in(1, 8);
    for (i64 k = 0; k < ranks; k++) chosen[k] = ranks - 1 - k;
    avial_layout(random_in(0, 3) ? 0 : random_in(1, 9), random_in(0, 5),
                 random_in(0, 2) ? random_in(1, ranks + 1) : 0, chosen);
    for (i64 k = 0; k < n; k++) weights[k] = random_in(-1, 6);
    avial_cost(random_in(0, 2) ? n : 0, weights);
}

static void test_one_owner(void)
{
    for (i64 turn = 0; turn < 3000; turn++) {
        i64 ranks = random_in(1, 12), space[2 * SPACE_WORDS], whole[4];
        avial_setup(ranks, -1, 0, NULL, NULL, NULL, NULL);
        random_layout(ranks);
        random_space(space), random_space(space + SPACE_WORDS);
        i64 lower[] = {space[SPACE_LOWER], space[SPACE_WORDS + SPACE_LOWER]};
        i64 rows = iterations_of(space), columns = iterations_of(space + SPACE_WORDS);
        step_of_test[0] = space[SPACE_STEP], step_of_test[1] = space[SPACE_WORDS + SPACE_STEP];
        memset(owner, -1, sizeof owner);
        for (i64 k = 0; k < phase.member_count; k++) for_each_range(k, space, take_range, lower);
        for (i64 i = 0; i < MOST_ITERATIONS; i++)
            for (i64 j = 0; j < MOST_ITERATIONS; j++)
                CHECK((owner[i][j] >= 0) == (i < rows && j < columns));
        CHECK(whole_space(space, whole) == (rows > 0 && columns > 0));
        if (rows > 0 && columns > 0) CHECK(whole[1] - whole[0] == (rows - 1) * step_of_test[0] + 1);
    }
}

static i64 iterations_counted;

static void count_range(i64 rank, const i64 *range, const void *unused)
{
    (void)rank, (void)unused;
    iterations_counted += range[1] - range[0];
}

/* Without weights parts differ by one iteration at most; work of 1 : 3 is split at two thirds. */
static void test_even_parts(void)
{
    for (i64 n = 1; n < 200; n += 7)
        for (i64 ranks = 1; ranks < 12; ranks++) {
            i64 space[] = {0, n, 1, 0, n, 0, 1, 1, 0, 0};
            avial_setup(ranks, -1, 0, NULL, NULL, NULL, NULL);
            avial_layout(0, 0, 0, NULL);
            for (i64 k = 0; k < ranks; k++) {
                iterations_counted = 0;
                for_each_range(k, space, count_range, NULL);
                CHECK(iterations_counted == n / ranks || iterations_counted == n / ranks + 1);
            }
        }
    i64 space[] = {0, 600, 1, 0, 600, 0, 1, 1, 0, 0};
    avial_setup(2, -1, 0, NULL, NULL, NULL, NULL);
    avial_layout(0, 0, 0, NULL);
    avial_cost(2, (i64[]){1, 3});
    iterations_counted = 0;
    for_each_range(0, space, count_range, NULL);
    CHECK(iterations_counted == 400);
}

/* Sums and products of large bounds do not overflow. */
static void test_large_spaces(void)
{
    i64 n = (i64)1 << 60, space[] = {0, n, 1, 0, n, 0, 1, 1, 0, 0};
    avial_setup(3, -1, 0, NULL, NULL, NULL, NULL);
    avial_layout(0, 0, 0, NULL);
    avial_cost(2, (i64[]){n, n});
    iterations_counted = 0;
    for (i64 k = 0; k < 3; k++) for_each_range(k, space, count_range, NULL);
    CHECK(iterations_counted == n);
}
