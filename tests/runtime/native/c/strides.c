/* Boxes copied run by run against the same element by element; nothing beside them is written. */

enum { GUARD = 64, ROOM = 6 * 5 * 4 * 3 * 16 };

static char one[ROOM + 2 * GUARD], two[ROOM + 2 * GUARD], packed[ROOM + 2 * GUARD];

static void fill_bytes(char *bytes, i64 from)
{
    for (i64 k = 0; k < ROOM + 2 * GUARD; k++) bytes[k] = (char)(from + 31 * k);
}

/* From any run on, those that are called evenly spaced are, and the row has no more of them. */
static void check_spacing(const StridedBox *s)
{
    for (i64 k = 0; k < run_count(s); k++) {
        i64 n = evenly_spaced(s, k);
        CHECK(n > 0 && k + n <= run_count(s) && (!s->dims || (k + n) % s->count[0] == 0));
        for (i64 j = 1; j < n; j++)
            CHECK(run_address(s, k + j) - run_address(s, k) == j * s->step[0]);
    }
}

static void test_strides(void)
{
    static const i64 SIZES[] = {1, 2, 4, 8, 16};
    for (i64 turn = 0; turn < 3000; turn++) {
        i64 nd = random_in(0, 5), dims[4], box[8], elements = 1, itemsize = SIZES[turn % 5];
        for (i64 d = 0; d < nd; d++) elements *= dims[d] = random_in(1, 7 - d);
        avial_setup(1, -1, 1, &nd, dims, &itemsize, NULL);
        const Array *a = &run.arrays[0];
        random_box(nd, dims, box);
        const i64 *used = box_given(a, box);
        fill_bytes(one, 0), fill_bytes(two, 100), fill_bytes(packed, 200);
        char *end = pack_box(packed + GUARD, a, one + GUARD, used), *at = packed + GUARD;
        CHECK(end - at == bytes_of(a, used));
        StridedBox s = strided_box(a, one + GUARD, used);
        check_spacing(&s);
        for (i64 e = 0; e < elements; e++) {
            if (!lies_in(nd, dims, box, e)) continue;
            CHECK(!memcmp(at, one + GUARD + e * itemsize, (size_t)itemsize));
            at += itemsize;
        }
        CHECK(at == end && packed[GUARD - 1] == (char)(200 + 31 * (GUARD - 1)));
        CHECK(*end == (char)(200 + 31 * (end - packed)));
        CHECK(unpack_box(packed + GUARD, a, two + GUARD, used) == end);
        for (i64 e = 0; e < elements; e++) {
            char *from = (lies_in(nd, dims, box, e) ? one : two) + GUARD + e * itemsize;
            CHECK(!memcmp(two + GUARD + e * itemsize, from, (size_t)itemsize));
        }
        for (i64 k = 0; k < GUARD; k++) CHECK(two[k] == (char)(100 + 31 * k));
        fill_bytes(packed, 100);
        copy_box(a, packed + GUARD, one + GUARD, used);
        CHECK(!memcmp(packed, two, sizeof two));
    }
}
