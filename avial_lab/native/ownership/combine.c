/* Partial results: where they begin, where they come together, who owns what comes of them. */

/* What this rank accumulates into, as the runtime wants it at the start. */
static void prepare(const Array *a, i64 array)
{
    if (combining) {
        for (i64 n = 0; n < a->cells.count; n++) {
            i64 *cell = row(a, &a->cells, n);
            if (!has(set_of(a, cell), me)) continue;
            if (lowest(set_of(a, cell)) == me) copy_between(a, a->scratch, a->memory, cell);
            else fill(a, a->scratch, cell);
        }
        return;
    }
    for (i64 k = 0; k < items.count; k++)
        if (items.rows[k].array == array && items.rows[k].use == REDUCE)
            copy_between(a, a->scratch, a->memory, box_of(items.rows[k].at));
}

/* The moves that bring the partial results of one cell together: to every rank where they are few,
 * else to each rank for the rows that are its own by default. Commits who owns the result. */
static void gather_cell(i64 array, const i64 *cell)
{
    Array *a = &arrays[array];
    i64 nd = a->nd, part[2 * MAX_DIMS], box[2 * MAX_DIMS];
    memcpy(of_rank, set_of(a, (i64 *)cell), (size_t)words * 8);
    memcpy(box, cell, (size_t)nd * 16);
    const u64 *set = (u64 *)of_rank;
    bool few = volume(nd, box) <= SMALL_REDUCTION;
    i64 along = 0;
    for (i64 d = 1; d < nd && a->whole[nd] < ranks; d++)
        if (a->whole[nd + d] > a->whole[nd + along]) along = d;
    i64 extent = a->whole[nd + along];
    for (i64 owner = 0; owner < ranks; owner++) {
        memcpy(part, box, (size_t)nd * 16);
        if (!few) {
            part[along] = max(box[along], (i64)((__int128)owner * extent / ranks));
            part[nd + along] = min(box[nd + along], (i64)((__int128)(owner + 1) * extent / ranks));
            if (part[along] >= part[nd + along]) continue;
        }
        for (i64 s = 0; s < ranks; s++)
            if (has(set, s)) move(s, owner, array, part, s == lowest(set));
        if (!few) own(a, part, owner);
    }
    if (few) own(a, box, -1);
}

/* The same where only one rank has a partial result: that is it. */
static void settle_cell(i64 array, i64 n)
{
    Array *a = &arrays[array];
    i64 *cell = row(a, &a->cells, n), rank = lowest(set_of(a, cell));
    if (size_of_set(set_of(a, cell)) > 1) {
        gather_cell(array, cell);
        return;
    }
    if (rank == me && a->scratch) copy_between(a, a->memory, a->scratch, cell);
    own(a, cell, rank);
}

/* A leader's cell and then its companions', so that they arrive one after the other. */
static void settle_led(i64 leader, i64 n, i64 place)
{
    settle_cell(leader, n);
    for (i64 k = 0; k < narrays; k++) {
        Array *a = &arrays[k];
        if (!a->cells.count || !follows(a->op) || leader_of(a->op) != leader) continue;
        i64 own = next_cell(a, 0);
        for (i64 before = 0; before < place; before++) own = next_cell(a, own + 1);
        settle_cell(k, own);
    }
}

static void reduce(void)
{
    moves.count = 0;
    for (i64 k = 0; k < narrays; k++) {
        Array *a = &arrays[k];
        if (!a->cells.count || follows(a->op)) continue;
        for (i64 n = next_cell(a, 0), place = 0; n >= 0; n = next_cell(a, n + 1), place++)
            settle_led(k, n, place);
    }
    group();
    count_messages();
    if (plan) return;
    for (i64 k = 0; k < moves.count; k++)
        if (moves.rows[k].source == me && !arrays[moves.rows[k].array].scratch) fail(NO_SCRATCH);
    start(true);
    receive(combine, true);
}
