/* Directories against a model with a writer and a set of ranks for every element. */

enum { MOST = 7 * 6 * 5, MOST_RANKS = 130 };

static struct {
    i64 nd, dims[3], elements;
    i64 writer[MOST];
    bool holds[MOST][MOST_RANKS], ever[MOST][MOST_RANKS];
} model;

static void begin(i64 ranks, i64 nd)
{
    i64 itemsize = 8;
    model.nd = nd;
    model.elements = 1;
    for (i64 d = 0; d < nd; d++) model.elements *= model.dims[d] = random_in(1, 8 - d);
    avial_setup(ranks, -1, 1, &nd, model.dims, &itemsize, NULL);
    CHECK(!avial_error);
    for (i64 k = 0; k < model.elements; k++) {
        model.writer[k] = -1;
        memset(model.holds[k], 0, sizeof model.holds[k]);
        memset(model.ever[k], 0, sizeof model.ever[k]);
    }
}

/* What `first_reaching` goes by, where it is known: no piece is wider in dimension 0. */
static void check_widest(const Array *a, const PieceList *list)
{
    for (i64 k = 0; k < list->count && list->widest >= 0; k++)
        CHECK(piece_at(a, list, k)[a->nd] - piece_at(a, list, k)[0] <= list->widest);
}

/* Pieces are in order and tile the array, and say of each element what the model does. */
static void compare(bool (*holds)[MOST_RANKS], PieceList *list, const i64 *writer)
{
    Array *a = &run.arrays[0];
    i64 covered = 0;
    check_widest(a, list);
    for (i64 k = 0; k < list->count; k++) {
        i64 *piece = piece_at(a, list, k);
        covered += volume(a->nd, piece);
        if (k) CHECK(compare_starts(a->nd, piece_at(a, list, k - 1), piece) < 0);
        for (i64 e = 0; e < model.elements; e++) {
            if (!lies_in(a->nd, model.dims, piece, e)) continue;
            if (writer) CHECK(*writer_of(a, piece) == writer[e]);
            i64 size = 0, first = -1;
            for (i64 r = 0; r < run.ranks; r++) {
                CHECK(set_has(holders_of(a, piece), r) == holds[e][r]);
                size += holds[e][r];
                if (first < 0 && holds[e][r]) first = r;
            }
            CHECK(set_size(holders_of(a, piece)) == size && set_first(holders_of(a, piece)) == first);
        }
    }
    CHECK(covered == model.elements);
}

/* On one rank a write adds to what was written, and changes nothing of it. */
static void write_box(void)
{
    i64 box[6], rank = random_in(0, 4) ? random_in(0, run.ranks) : -1;
    random_box(model.nd, model.dims, box);
    set_owner(&run.arrays[0], box, rank);
    for (i64 e = 0; e < model.elements; e++) {
        if (!lies_in(model.nd, model.dims, box, e)) continue;
        model.writer[e] = max(rank, 0);
        for (i64 r = 0; r < run.ranks; r++) {
            model.holds[e][r] = rank < 0 || r == rank;
            model.ever[e][r] |= model.holds[e][r];
        }
    }
}

static void read_box(void)
{
    Array *a = &run.arrays[0];
    i64 box[6], rank = random_in(0, run.ranks), lacked = 0, found = 0;
    bool in_pieces = random_in(0, 2);
    random_box(model.nd, model.dims, box);
    if (is_fully_written(a)) return; /* whoever reads asks that first */
    add_holder(a, &a->ever_held, box, rank, true);
    i64 count = add_holder(a, &a->directory, box, rank, in_pieces);
    for (i64 k = 0; k < count; k++) {
        i64 *part = (in_pieces ? scratch.pieces : scratch.more_pieces).rows + k * a->stride;
        CHECK(contains(a->nd, box, part) && set_has(holders_of(a, part), rank));
        found += volume(a->nd, part);
    }
    for (i64 e = 0; e < model.elements; e++) {
        if (!lies_in(model.nd, model.dims, box, e)) continue;
        lacked += !model.holds[e][rank];
        model.holds[e][rank] = model.ever[e][rank] = true;
    }
    CHECK(found == lacked);
}

static void test_pieces(void)
{
    static const i64 RANKS[] = {1, 2, 3, 7, 64, 65, 130};
    for (i64 turn = 0; turn < 210; turn++) {
        begin(RANKS[turn % 7], 1 + turn % 3);
        Array *a = &run.arrays[0];
        for (i64 step = 0; step < 25; step++) {
            if (random_in(0, 2)) write_box();
            else read_box();
            compare(model.holds, &a->directory, model.writer);
            compare(model.ever, &a->ever_held, NULL);
        }
        set_owner(a, a->whole, 0);
        CHECK(a->directory.count == 1); /* what is alike is one piece again */
    }
}

/* Rows that are written one after the other, in any order, are one piece when all are. */
static void test_merging(void)
{
    i64 nd = 2, dims[] = {40, 3}, itemsize = 8, order[40];
    for (i64 turn = 0; turn < 50; turn++) {
        avial_setup(4, -1, 1, &nd, dims, &itemsize, NULL);
        for (i64 k = 0; k < 40; k++) {
            i64 j = random_in(0, k + 1);
            order[k] = order[j];
            order[j] = k;
        }
        for (i64 k = 0; k < 40; k++)
            set_owner(&run.arrays[0], (i64[]){order[k], 0, order[k] + 1, 3}, 2);
        CHECK(run.arrays[0].directory.count == 1);
    }
}
