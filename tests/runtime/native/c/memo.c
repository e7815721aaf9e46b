/* A phase that comes again is found, and what is found is what would have been derived. */

static i64 row_read, row_written;

static void rows_touched(const i64 *params, const i64 *range)
{
    (void)params;
    avial_read(0, (i64[]){range[0] + row_read, 0, range[1] + row_read, 4});
    avial_write(1, (i64[]){range[0] + row_written, 1, range[1] + row_written, 4}, row_written % 2);
}

static void run_phase(i64 read, i64 written)
{
    static const i64 SPACE[] = {0, 16, 1, 0, 16, 0, 1, 1, 0, 0};
    row_read = read, row_written = written;
    avial_begin(0, PHASE_REPLICATE, rows_touched, NULL, SPACE);
}

static void begin_rows(void)
{
    i64 nd[] = {2, 2}, dims[] = {20, 4, 20, 4}, itemsizes[] = {8, 8};
    avial_setup(3, -1, 2, nd, dims, itemsizes, NULL);
}

static bool is_found(i64 read, i64 written)
{
    run_phase(read, written);
    bool found = phase.memo_found;
    avial_end();
    for (i64 k = 0; k < 2; k++) check_widest(&run.arrays[k], &run.arrays[k].directory);
    return found;
}

static void test_what_comes_again_is_found(void)
{
    begin_rows();
    CHECK(!is_found(0, 0)); /* directories as they were given */
    CHECK(!is_found(0, 0)); /* as they are after it */
    CHECK(is_found(0, 0));
    CHECK(!is_found(1, 0) && !is_found(1, 0) && is_found(1, 0)); /* other footprints */
    set_owner(&run.arrays[0], (i64[]){3, 0, 4, 4}, 2);
    CHECK(!is_found(1, 0)); /* another directory */
    begin_rows();
    CHECK(!is_found(0, 0)); /* another run */
}

/* Pieces of one row become wide ones: what is known of their width is not that of before. */
static void test_wide_pieces_are_found_again(void)
{
    bool found = false;
    begin_rows();
    for (i64 turn = 0; turn < 3; turn++) {
        for (i64 low = 0; low < 20; low++)
            set_owner(&run.arrays[1], (i64[]){low, 0, low + 1, 4}, low % 3);
        found = is_found(0, 0);
    }
    CHECK(found);
}

/* Whatever rows are read, everybody has them; and the rows that are written are owned already. */
static void begin_settled_rows(void)
{
    static const i64 SPACE[] = {0, 16, 1, 0, 16, 0, 1, 1, 0, 0};
    begin_rows();
    for (i64 r = 0; r < 3; r++)
        add_holder(&run.arrays[0], &run.arrays[0].directory, run.arrays[0].whole, r, true);
    row_read = 0, row_written = 4;
    avial_begin(1, PHASE_REPLICATE, rows_touched, NULL, SPACE);
    avial_end();
}

static void test_the_oldest_is_replaced(void)
{
    begin_settled_rows();
    for (i64 k = 0; k < MEMO_ENTRIES; k++) CHECK(!is_found(k, 4));
    for (i64 k = 0; k < MEMO_ENTRIES; k++) CHECK(is_found(k, 4));
    CHECK(!is_found(MEMO_ENTRIES, 4)); /* in place of the first */
    for (i64 k = 1; k <= MEMO_ENTRIES; k++) CHECK(is_found(k, 4));
    CHECK(!is_found(0, 4)); /* in place of the second */
    CHECK(is_found(2, 4) && !is_found(1, 4));
}

/* After 8 misses in a row phases are kept at powers of two only. */
static void test_what_never_comes_again_is_kept_rarely(void)
{
    begin_rows();
    for (i64 misses = 1; misses <= 40; misses++) {
        set_owner(&run.arrays[0], (i64[]){misses % 20, 0, misses % 20 + 1, 4}, misses % 3);
        set_owner(&run.arrays[1], (i64[]){0, 0, misses % 17 + 1, misses % 3 + 1}, misses / 3 % 3);
        run_phase(misses % 4, misses % 3);
        CHECK(!phase.memo_found && run.phases.rows[0].memo_misses == misses);
        CHECK(!phase.memo_open == (misses > 8 && misses != 16 && misses != 32));
        avial_end();
    }
}

enum { TABLE_ROOM = 4096 };

/* Words of the tables that a phase may change. */
static i64 read_tables(i64 *out)
{
    i64 used = 0;
    for (i64 which = TABLE_INPUTS; which <= TABLE_DIRECTORY; which++)
        used += avial_table(which, out + used, TABLE_ROOM - used);
    CHECK(used < TABLE_ROOM);
    return used;
}

static i64 run_phases(i64 seed, bool with_memo, i64 *tables, i64 *found)
{
    random_state = (u64)seed + 1;
    begin_rows();
    for (i64 turn = 0; turn < 60; turn++) {
        for (i64 k = 0; !with_memo && run.phases.count && k < MEMO_ENTRIES; k++)
            run.phases.rows[0].memo[k].valid = false;
        i64 read = random_in(0, 2), written = random_in(0, 2);
        *found += is_found(read, written);
    }
    return read_tables(tables);
}

static void test_the_same_with_and_without(void)
{
    static i64 with[TABLE_ROOM], without[TABLE_ROOM];
    i64 found = 0, none = 0;
    for (i64 seed = 0; seed < 30; seed++) {
        i64 size = run_phases(seed, true, with, &found);
        CHECK(run_phases(seed, false, without, &none) == size);
        CHECK(!memcmp(with, without, (size_t)size * 8));
    }
    CHECK(found > 300 && !none);
}
