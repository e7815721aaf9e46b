/* Tests of devices, as one program with all of their files. The test to run is the argument. */
#include "devices/devices.c"

#include "../../c/checks.h"

static int64_t element(int64_t k) { return 1000 + k; }

enum { N = 6 };

static const int64_t SHAPE[2] = {N, N};
static int64_t host[N * N], back[N * N];
static const int64_t WHOLE[4] = {0, 0, N, N};

static void fill(void)
{
    for (int64_t k = 0; k < N * N; k++) host[k] = element(k), back[k] = 0;
}

/* A kernel: adds its second argument to `N * N` elements at its first. */
typedef struct {
    int64_t *at, more;
} Adding;

static void add(void *data)
{
    Adding a = *(Adding *)data;
    for (int64_t k = 0; k < N * N; k++) a.at[k] += a.more;
}

static Launch adding(int64_t *at, int64_t more, Adding *room)
{
    *room = (Adding){at, more};
    Launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .data = room, .bytes = sizeof *room};
    void (*kernel)(void *) = add;
    memcpy(&launch.kernel, &kernel, sizeof kernel);
    return launch;
}

static BoxCopy all_of(CopyKind kind, uint64_t device, int64_t *memory)
{
    return (BoxCopy){.kind = kind, .device = device, .host = (char *)memory, .run_bytes = N * N * 8};
}

/* apart ---------------------------------------------------------------------------------------- */

static void test_memory_is_apart_and_poisoned(void)
{
    const Driver *d = &apart_driver;
    void *device = d->open(0);
    uint64_t there = d->allocate(device, sizeof host);
    CHECK(there && *(int64_t *)(uintptr_t)there == -1);
    BoxCopy out = all_of(COPY_OUT, there, back);
    CHECK(d->copy(device, QUEUE_OUT, &out));
    CHECK(d->finish(device) && back[0] == -1); /* nobody copied anything there */
    out.device += 8;
    CHECK(!d->copy(device, QUEUE_OUT, &out) && strstr(d->why(), "leaves the memory"));
    CHECK(d->release(device, there) && !d->release(device, there));
    CHECK(!d->allocate(device, INT64_MAX / 2) && strstr(d->why(), "no memory for"));
    d->close(device);
}

/* What happens between a launch and a copy out in another queue, with an event or without. */
static int64_t copied_after_a_launch(bool waits)
{
    const Driver *d = &apart_driver;
    void *device = d->open(0);
    uint64_t there = d->allocate(device, sizeof host);
    fill();
    BoxCopy in = all_of(COPY_IN, there, host), out = all_of(COPY_OUT, there, back);
    Adding room;
    Launch launch = adding((int64_t *)(uintptr_t)there, 5, &room);
    CHECK(d->copy(device, QUEUE_IN, &in));
    CHECK(d->wait(device, QUEUE_KERNELS, device, d->record(device, QUEUE_IN)));
    CHECK(d->launch(device, QUEUE_KERNELS, &launch));
    room.more = 1000; /* it has its own copy */
    if (waits) CHECK(d->wait(device, QUEUE_OUT, device, d->record(device, QUEUE_KERNELS)));
    CHECK(d->copy(device, QUEUE_OUT, &out));
    CHECK(d->synchronise(device, d->record(device, QUEUE_OUT)));
    int64_t got = back[3];
    d->close(device);
    return got;
}

static void test_late(void)
{
    CHECK(copied_after_a_launch(true) == element(3) + 5);
    CHECK(copied_after_a_launch(false) == -1); /* poison: not even the copy to it has run */
}

static void test_seeded(void)
{
    int64_t stale = 0;
    for (avial_apart_seed = 1; avial_apart_seed < 50; avial_apart_seed++) {
        CHECK(copied_after_a_launch(true) == element(3) + 5);
        stale += copied_after_a_launch(false) != element(3) + 5;
    }
    avial_apart_seed = 0;
    CHECK(stale > 10);
}

static void test_the_host_s_memory_is_read_late(void)
{
    const Driver *d = &apart_driver;
    void *device = d->open(0);
    uint64_t there = d->allocate(device, sizeof host);
    fill();
    BoxCopy in = all_of(COPY_IN, there, host);
    CHECK(d->copy(device, QUEUE_IN, &in));
    host[0] = 7; /* without a wait */
    CHECK(d->finish(device) && *(int64_t *)(uintptr_t)there == 7);
    d->close(device);
}

static void test_what_no_device_can_launch(void)
{
    const Driver *d = &apart_driver;
    void *device = d->open(0);
    Adding room;
    struct {
        int64_t grid, block, high, shared;
        const char *why;
    } asked[] = {
        {1, 1025, 1, 0, "1025 threads in x"},     {1, 512, 4, 0, "block of 2048 threads"},
        {1, 0, 1, 0, "0 threads in x"},           {(int64_t)1 << 31, 1, 1, 0, "blocks in x"},
        {1, 1, 1, 300000, "300000 bytes of shared"}, {-1, 1, 1, 0, "-1 blocks"},
    };
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        Launch launch = adding(host, 1, &room);
        launch.grid[0] = asked[k].grid, launch.block[0] = asked[k].block;
        launch.block[1] = asked[k].high, launch.shared_bytes = asked[k].shared;
        CHECK(!d->launch(device, QUEUE_KERNELS, &launch));
        CHECK(strstr(d->why(), asked[k].why));
    }
    Launch launch = adding(host, 1, &room);
    launch.block[0] = 1024, launch.shared_bytes = 227 << 10;
    fill();
    CHECK(d->launch(device, QUEUE_KERNELS, &launch) && d->finish(device));
    CHECK(host[0] == element(0) + 1);
    CHECK(!d->kernel(device, d->load(device, ""), "k") && strstr(d->why(), "and no others"));
    d->close(device);
}

/* places --------------------------------------------------------------------------------------- */

/* Two ranks of two devices each, as rank 0: devices are the places 2, 3 (ours), 4 and 5. */
static void two_devices(void)
{
    int64_t drivers[4] = {0, 0, 1, 1};
    fill();
    CHECK(avial_places(2, 0, 4, drivers));
    CHECK(avial_place_array(0, 2, SHAPE, 8, (char *)host));
}

static void launch_on(int64_t place, int64_t more)
{
    Adding a = {(int64_t *)avial_at(place, 0, (char *)host), more};
    CHECK(a.at && a.at != host && avial_touch(place, 0, 1));
    CHECK(avial_launch_at(place, &(DeviceKernel){.emulated = add}, &a, sizeof a, 0));
}

static void test_a_box_there_and_back(void)
{
    for (int64_t turn = 0; turn < 200; turn++) {
        avial_seed = turn / 2;
        two_devices();
        int64_t in[4], out[4], bytes;
        random_box(2, SHAPE, in), random_box(2, SHAPE, out);
        CHECK(avial_copy_box(0, 2, 0, in));
        launch_on(2, 5);
        CHECK(avial_copy_box(2, 0, 0, out) && avial_host_waits(true));
        for (int64_t k = 0; k < N * N; k++) {
            int64_t want = element(k);
            if (lies_in(2, SHAPE, out, k))
                want = lies_in(2, SHAPE, in, k) ? want + 5 : 4; /* poison, plus 5 */
            CHECK(host[k] == want);
        }
        CHECK(avial_copied(0, 2, &bytes) == 1);
        CHECK(bytes == 8 * (in[2] - in[0]) * (in[3] - in[1]));
        CHECK(avial_places_end());
    }
    avial_seed = 0;
}

/* From a device by the host, and directly, to another one; and the host's memory is free again. */
static void test_from_device_to_device(void)
{
    for (int64_t turn = 0; turn < 100; turn++) {
        avial_seed = turn / 2;
        two_devices();
        CHECK(avial_copy_box(0, 2, 0, WHOLE));
        launch_on(2, 5);
        if (turn % 2) CHECK(avial_copy_box(2, 0, 0, WHOLE) && avial_copy_box(0, 3, 0, WHOLE));
        else CHECK(avial_copy_box(2, 3, 0, WHOLE));
        launch_on(2, 100); /* not before the copy has read it */
        launch_on(3, 10);
        CHECK(avial_host_waits(false));
        memset(host, 0, sizeof host);
        CHECK(avial_copy_box(3, 0, 0, WHOLE) && avial_host_waits(true));
        for (int64_t k = 0; k < N * N; k++) CHECK(host[k] == element(k) + 15);
        CHECK(avial_places_end());
    }
    avial_seed = 0;
}

/* What is copied in replaces what launches before it made, and is not read by them. */
static void test_a_copy_in_again(void)
{
    for (int64_t turn = 0; turn < 50; turn++) {
        avial_seed = turn;
        two_devices();
        CHECK(avial_copy_box(0, 2, 0, WHOLE));
        launch_on(2, 5);
        CHECK(avial_copy_box(0, 2, 0, WHOLE));
        launch_on(2, 100);
        CHECK(avial_host_waits(false));
        memset(host, 0, sizeof host);
        CHECK(avial_copy_box(2, 0, 0, WHOLE) && avial_host_waits(true));
        for (int64_t k = 0; k < N * N; k++) CHECK(host[k] == element(k) + 100);
        CHECK(avial_places_end());
    }
    avial_seed = 0;
}

/* The elements of a box that leaves a device, or comes to one. */
static StageRuns runs_of_box(const int64_t *box)
{
    return (StageRuns){0, (box[0] * N + box[1]) * 8, N * 8, box[2] - box[0], (box[3] - box[1]) * 8};
}

static void check_packed(const Stage *stage, const int64_t *box, int64_t more)
{
    const int64_t *packed = (const int64_t *)avial_stage_memory(stage) + 1;
    for (int64_t i = box[0]; i < box[2]; i++)
        for (int64_t j = box[1]; j < box[3]; j++) CHECK(*packed++ == element(i * N + j) + more);
}

/* By stages, of the device's memory or the host's: a box of the first device, when its launch is
 * over and before the next, to the second, over what that has made and sent; and that stage is free
 * again when all has been taken from it. */
static void test_between_ranks(void)
{
    for (int64_t turn = 0; turn < 400; turn++) {
        bool launches = turn % 3, sends = turn % 5 > 1;
        int64_t box[4];
        avial_seed = turn % 100 / 2, avial_direct = turn / 100 % 2;
        if (turn % 100 == 0) avial_places_drop(); /* what is kept is of the other way */
        two_devices();
        random_box(2, SHAPE, box);
        StageRuns runs = runs_of_box(box), all = runs_of_box(WHOLE);
        CHECK(avial_copy_box(0, 2, 0, WHOLE) && avial_copy_box(0, 3, 0, WHOLE));
        if (launches) launch_on(2, 5);
        launch_on(3, 100);
        Stage *out = avial_stage(2, (N * N + 1) * 8), *in = avial_stage(3, (N * N + 1) * 8);
        Stage *old = avial_stage(3, (N * N + 1) * 8);
        CHECK(out && in && old && in != old);
        CHECK(!avial_direct == !out->there && !out->there == !!out->here);
        CHECK(avial_stage_runs(out, 8, &runs, true));
        if (sends) CHECK(avial_stage_runs(old, 8, &all, true));
        avial_stage_mark(out, 1, true), avial_stage_mark(old, 0, true);
        launch_on(2, 1000);
        CHECK(avial_stage_wait(out, 1));
        check_packed(out, box, launches ? 5 : 0);
        memcpy(avial_stage_memory(in), avial_stage_memory(out), (N * N + 1) * 8); /* MPI */
        CHECK(avial_stage_runs(in, 8, &runs, false));
        avial_stage_mark(in, 2, false);
        CHECK(avial_stage_wait(old, 0));
        if (sends) check_packed(old, WHOLE, 100);
        launch_on(3, 7);
        avial_stage_free(in), avial_stage_free(out), avial_stage_free(old);
        CHECK(avial_stage(3, 8) && in->used);
        memset(avial_stage_memory(in), 1, (N * N + 1) * 8);
        CHECK(avial_host_waits(false));
        memset(host, 0, sizeof host);
        CHECK(avial_copy_box(3, 0, 0, WHOLE) && avial_host_waits(true));
        for (int64_t k = 0; k < N * N; k++) {
            bool came = lies_in(2, SHAPE, box, k);
            CHECK(host[k] == element(k) + 7 + (came ? (launches ? 5 : 0) : 100));
        }
        CHECK(avial_copy_box(2, 0, 0, WHOLE) && avial_host_waits(true));
        for (int64_t k = 0; k < N * N; k++)
            CHECK(host[k] == element(k) + 1000 + (launches ? 5 : 0));
        CHECK(avial_places_end());
    }
    avial_seed = avial_direct = 0;
    avial_places_drop();
}

static void test_what_is_not_ours(void)
{
    two_devices();
    CHECK(!avial_copy_box(0, 1, 0, WHOLE) && strstr(avial_device_why(), "is a message"));
    CHECK(!avial_touch(4, 0, 0) && strstr(avial_device_why(), "does not drive"));
    CHECK(!avial_stage(4, 8) && strstr(avial_device_why(), "does not drive"));
    CHECK(avial_at(0, 0, (char *)host) == (char *)host);
    CHECK(avial_places_end());
}

static const Apart *first_device(void) { return place_of(2)->device; }

/* An array whose last use is over makes room for the next of its size: what was put into queues for
 * the one is done before what is for the other, which finds nothing of it. */
static void test_memory_is_taken_again(void)
{
    static int64_t last[4 * 2] = {1, 2, -1, -1, -1, -1, -1, -1};
    static int64_t more[N * N];
    for (int64_t turn = 0; turn < 200; turn++) {
        avial_seed = turn / 2;
        avial_last_uses = last, avial_last_arrays = 2;
        two_devices();
        CHECK(avial_place_array(1, 2, SHAPE, 8, (char *)more));
        CHECK(avial_copy_box(0, 2, 0, WHOLE));
        launch_on(2, 5);
        CHECK(avial_copy_box(2, 0, 0, WHOLE));
        avial_passed(1);
        memset(more, 0, sizeof more);
        int64_t upper[4] = {0, 0, 3, N};
        CHECK(avial_copy_box(0, 2, 1, upper));
        Adding a = {(int64_t *)avial_at(2, 1, (char *)more), 100};
        CHECK(avial_touch(2, 1, 1));
        CHECK(avial_launch_at(2, &(DeviceKernel){.emulated = add}, &a, sizeof a, 0));
        CHECK(avial_copy_box(2, 0, 1, WHOLE) && avial_host_waits(true));
        for (int64_t k = 0; k < N * N; k++) CHECK(host[k] == element(k) + 5);
        for (int64_t k = 0; k < N * N; k++) CHECK(more[k] == (k < 3 * N ? 100 : 99)); /* poison */
        CHECK(avial_most_taken(2) == N * N * 8 && first_device()->taken == N * N * 8);
        CHECK(!avial_at(2, 0, (char *)host) && strstr(avial_device_why(), "after its last use"));
        avial_places_end();
    }
    avial_seed = 0, avial_last_uses = NULL;
}

/* From run to run, and no more than arrays had at once; after a failure nothing. */
static void test_memory_is_kept(void)
{
    static int64_t last[4 * 2] = {1, 9, -1, -1, -1, -1, -1, -1};
    static int64_t more[2 * N * N], shape[1] = {2 * N * N};
    const Apart *before = NULL;
    for (int64_t turn = 0; turn < 3; turn++) {
        avial_last_uses = last, avial_last_arrays = 2;
        two_devices();
        CHECK(!before || before == first_device());
        CHECK(avial_place_array(1, 1, shape, 8, (char *)more));
        CHECK(avial_copy_box(0, 2, 0, WHOLE));
        avial_passed(1);
        int64_t all[2] = {0, 2 * N * N};
        CHECK(avial_copy_box(0, 2, 1, all)); /* the smaller block is not kept beside it */
        before = first_device();
        CHECK(before->taken == 2 * N * N * 8 && before->count == 1);
        CHECK(avial_most_taken(2) == 2 * N * N * 8);
        CHECK(avial_places_end() && avial_most_taken(2) == 2 * N * N * 8);
        CHECK(kept.count == 2 && avial_most_taken(3) == 0);
    }
    two_devices(); /* those that were kept */
    CHECK(!kept.count && !avial_copy_box(0, 1, 0, WHOLE));
    avial_places_end();
    CHECK(!kept.count);
    two_devices();
    CHECK(avial_copy_box(0, 2, 0, WHOLE) && avial_places_end() && kept.count == 2);
    avial_places_drop();
    CHECK(!kept.count);
    avial_last_uses = NULL;
}

/* An array of the caller's on a device, which a launch writes: undone where the run has failed, or
 * where the caller says so, and there is no memory for it any more. */
static void test_what_a_run_wrote_is_undone(void)
{
    static int64_t there[N * N];
    for (int64_t turn = 0; turn < 60; turn++) {
        bool fails = turn % 3 == 0, whole = turn % 3 == 1;
        GivenArray given = {.place = 2, .address = (int64_t)(uintptr_t)there, .keeps = 1};
        for (int64_t k = 0; k < N * N; k++) there[k] = element(k);
        avial_given = &given, avial_given_count = 1;
        avial_seed = turn / 3;
        two_devices();
        launch_on(2, 5);
        launch_on(2, 6);
        CHECK(avial_most_taken(2) == N * N * 8 && first_device()->taken == N * N * 8);
        if (fails) CHECK(!avial_touch(4, 0, 0));
        CHECK(avial_places_end() && avial_settle(whole));
        for (int64_t k = 0; k < N * N; k++) CHECK(there[k] == element(k) + (whole ? 11 : 0));
        CHECK(kept.count == (fails ? 0 : 2) && !saved.count);
        if (!fails) CHECK(!((Apart *)kept.devices[0].device)->taken);
    }
    avial_given_count = 0, avial_seed = 0;
}

static void limited(int64_t driver, const char *why)
{
    static int64_t more[N * N];
    int64_t total;
    avial_driver = driver, avial_memory_limit = N * N * 8 + 7;
    two_devices();
    CHECK(avial_place_array(1, 2, SHAPE, 8, (char *)more));
    CHECK(avial_room(2, &total) == N * N * 8 + 7 && total == N * N * 8 + 7);
    CHECK(avial_copy_box(0, 2, 0, WHOLE) && avial_room(2, &total) == 7);
    CHECK(avial_copy_box(0, 3, 1, WHOLE)); /* the other device */
    CHECK(!avial_copy_box(0, 2, 1, WHOLE) && avial_device_failed == DEVICE_NO_MEMORY);
    CHECK(strstr(avial_device_why(), why));
    CHECK(strstr(avial_device_why(), "array 1 takes 288 bytes on gpu0, and 7 of 295 are free; there "
                                     "are already array 0 with 288 bytes"));
    avial_places_end();
    CHECK(avial_device_failed == DEVICE_NO_MEMORY);
    avial_driver = DRIVER_APART, avial_memory_limit = 0;
}

static void test_a_limit(void)
{
    limited(DRIVER_APART, "the emulated device has no memory for 288 bytes");
    limited(DRIVER_NULL, "the limit leaves no memory");
}

/* Of an array of ten granules two are used on one device, and none on the other. */
static void test_memory_by_granules(void)
{
    enum { SIZE = 10 * GRANULE / 8 };
    static const int64_t shape[1] = {SIZE}, used[4] = {0, 1, 4, 6};
    static int64_t last[4 * 2] = {-1, 9, -1, -1, -1, -1, -1, -1}, large[SIZE];
    const int64_t first = 4 * (GRANULE / 8) + 1, inside[2] = {first, 6 * (GRANULE / 8)};
    const int64_t before[2] = {first - 2, first + 1};
    for (int64_t turn = 0; turn < 2; turn++) {
        avial_last_uses = last, avial_last_arrays = 2;
        avial_granules = used, avial_granule_runs = 1;
        two_devices();
        CHECK(avial_place_array(1, 1, shape, 8, (char *)large));
        for (int64_t k = 0; k < SIZE; k++) large[k] = element(k);
        CHECK(avial_copy_box(0, 2, 1, inside) && avial_host_waits(false));
        CHECK(avial_most_taken(2) == 2 * GRANULE);
        memset(large, 0, sizeof large);
        CHECK(avial_copy_box(2, 0, 1, inside) && avial_host_waits(true));
        for (int64_t k = 0; k < SIZE; k++)
            CHECK(large[k] == (k >= inside[0] && k < inside[1] ? element(k) : 0));
        CHECK(avial_at(2, 0, (char *)host) && avial_at(3, 1, (char *)large)); /* nothing of them */
        CHECK(avial_most_taken(2) == 2 * GRANULE && !avial_most_taken(3));
        if (turn) CHECK(!avial_copy_box(0, 2, 1, before) && strstr(avial_device_why(), "leaves"));
        else CHECK(avial_places_end()); /* the granules are kept, and poisoned again */
    }
    avial_places_end();
    CHECK(!kept.count);
    avial_last_uses = avial_granules = NULL, avial_granule_runs = 0;
}

static void test_null_counts(void)
{
    avial_driver = DRIVER_NULL;
    two_devices();
    int64_t rows[4] = {1, 0, 3, N};
    CHECK(avial_copy_box(0, 2, 0, WHOLE) && avial_copy_box(2, 0, 0, rows));
    launch_on(2, 5);
    CHECK(avial_null_counts.copies == 2 && avial_null_counts.copied_bytes == (N * N + 2 * N) * 8);
    CHECK(avial_null_counts.launches == 1 && avial_null_counts.allocated_bytes == N * N * 8);
    CHECK(host[0] == element(0) && avial_places_end());
    avial_driver = DRIVER_APART;
}

/* cuda, with a driver that has no GPU (fake_cuda.c) -------------------------------------------- */

static void *opened(void)
{
    void *device = cuda_driver.open(0);
    if (!device) fprintf(stderr, "%s\n", cuda_driver.why());
    CHECK(device);
    return device;
}

static void test_cuda_copies_and_launches(void)
{
    const Driver *d = &cuda_driver;
    void *device = opened();
    Limits limits;
    CHECK(d->count() == 2 && d->limits(device, &limits));
    CHECK(limits.block_threads == 1024 && limits.capability == 90 && limits.grid[1] == 65535);
    CHECK(!strcmp(limits.name, "Fake GPU") && limits.shared_bytes == 232448);
    for (int64_t turn = 0; turn < 100; turn++) {
        uint64_t there = d->allocate(device, sizeof host);
        fill();
        BoxCopy in = all_of(COPY_IN, there, host), out = {.kind = COPY_OUT};
        int64_t box[4];
        random_box(2, SHAPE, box);
        int64_t offset = (box[0] * N + box[1]) * 8;
        out.device = there + (uint64_t)offset, out.host = (char *)back + offset;
        out.run_bytes = (box[3] - box[1]) * 8;
        out.dims = 1, out.count[0] = box[2] - box[0], out.here[0] = out.there[0] = N * 8;
        CHECK(d->copy(device, QUEUE_IN, &in));
        CHECK(d->wait(device, QUEUE_OUT, device, d->record(device, QUEUE_IN)));
        CHECK(d->copy(device, QUEUE_OUT, &out) && d->finish(device));
        for (int64_t k = 0; k < N * N; k++)
            CHECK(back[k] == (lies_in(2, SHAPE, box, k) ? element(k) : 0));
        CHECK(d->release(device, there) && !d->release(device, there));
    }
    void *module = d->load(device, ".version 7.8");
    void *kernel = d->kernel(device, module, "fill");
    struct {
        uint64_t at;
        int64_t value;
    } data = {d->allocate(device, 8), 42};
    int64_t offsets[2] = {0, 8}, got = 0;
    Launch launch = {.kernel = kernel, .grid = {3, 1, 1}, .block = {128, 1, 1}, .data = &data,
                     .bytes = sizeof data, .offsets = offsets, .arguments = 2};
    BoxCopy out = {.kind = COPY_OUT, .device = data.at, .host = (char *)&got, .run_bytes = 8};
    CHECK(d->launch(device, QUEUE_KERNELS, &launch) && d->finish(device));
    CHECK(d->copy(device, QUEUE_OUT, &out) && d->finish(device) && got == 42 + 3 * 128);
    CHECK(!d->kernel(device, module, "none") && strstr(d->why(), "none called none"));
    launch.block[0] = 2000;
    CHECK(!d->launch(device, QUEUE_KERNELS, &launch) && strstr(d->why(), "2000 threads"));
    CHECK(!d->allocate(device, (int64_t)1 << 50) && strstr(d->why(), "out of memory"));
    for (int k = 0; k < 3 * RING; k++) CHECK(d->synchronise(device, d->record(device, QUEUE_IN)));
    d->close(device);
}

static int64_t told(const char *name)
{
    int64_t *there;
    void *symbol = dlsym(cu.library, name);
    memcpy(&there, &symbol, sizeof there);
    return *there;
}

/* Addresses of ten granules, with memory for four of them. */
static void test_cuda_maps(void)
{
    const Driver *d = &cuda_driver;
    static const int64_t runs[4] = {1, 3, 7, 9}, many[4] = {0, 1, 1, 10};
    void *device = opened();
    uint64_t there = d->reserve(device, 9 * (int64_t)GRANULE + 1, runs, 2);
    CHECK(there && told("fake_mapped") == (3 << 1 | 3 << 7) && !told("fake_there"));
    CHECK(!d->reserve(device, GRANULE, runs, 0) && strstr(d->why(), "no addresses"));
    CHECK(d->release(device, there) && !told("fake_mapped") && !d->release(device, there));
    CHECK(!d->reserve(device, 10 * (int64_t)GRANULE, many, 2) && strstr(d->why(), "out of memory"));
    CHECK(!told("fake_mapped"));
    there = d->reserve(device, GRANULE, NULL, 0);
    CHECK(there && d->release(device, there));
    CHECK(d->reserve(device, 9 * (int64_t)GRANULE, runs, 2));
    void *second = d->open(1);
    CHECK(second && !d->maps(device) && !d->maps(second));
    d->close(second);
    CHECK(d->maps(device));
    d->close(device);
    CHECK(!told("fake_mapped"));
}

/* The device is of capability 90, and refuses code whose fifth byte is '!'. */
/* Boxes of short rows, some larger than both halves, between an array of three dimensions and its
 * place on the device: their bytes and no others. */
static void test_cuda_packed_boxes(void)
{
    enum { PLANES = 5, ROWS = 3000, WIDE = 60 };
    static const int64_t shape[3] = {PLANES, ROWS, WIDE};
    static int64_t array[PLANES * ROWS * WIDE], copied[PLANES * ROWS * WIDE];
    const Driver *d = &cuda_driver;
    void *device = opened();
    uint64_t there = d->allocate(device, sizeof array);
    int64_t *on_device = (int64_t *)(uintptr_t)there;
    for (int64_t k = 0; k < PLANES * ROWS * WIDE; k++) array[k] = element(k);
    for (int64_t turn = 0; turn < 24; turn++) {
        int64_t box[6], before = told("fake_called"), out = turn % 2 == 0;
        do random_box(3, shape, box);
        while (turn % 3 == 0 && (box[3] - box[0]) * (box[4] - box[1]) * (box[5] - box[2]) < 300000);
        int64_t offset = (box[0] * ROWS * WIDE + box[1] * WIDE + box[2]) * 8;
        BoxCopy copy = {.kind = out ? COPY_OUT : COPY_IN,
                        .run_bytes = (box[5] - box[2]) * 8,
                        .dims = 2,
                        .count = {box[4] - box[1], box[3] - box[0]},
                        .here = {WIDE * 8, ROWS * WIDE * 8},
                        .there = {WIDE * 8, ROWS * WIDE * 8},
                        .device = there + (uint64_t)offset,
                        .host = (char *)(out ? copied : array) + offset};
        int64_t rows = copy.count[0] * copy.count[1];
        memset(copied, 0, sizeof copied);
        for (int64_t k = 0; k < PLANES * ROWS * WIDE; k++) on_device[k] = out ? element(k) : 0;
        CHECK(d->copy(device, out ? QUEUE_OUT : QUEUE_IN, &copy) && d->finish(device));
        const int64_t *got = out ? copied : on_device;
        for (int64_t k = 0; k < PLANES * ROWS * WIDE; k++)
            CHECK(got[k] == (lies_in(3, shape, box, k) ? element(k) : 0));
        int64_t pieces = told("fake_called") - before;
        CHECK((pieces > 0) == (rows >= 64 && copy.run_bytes > 0));
        CHECK(pieces * HALF >= (pieces ? rows * copy.run_bytes : 0));
    }
    BoxCopy column = {.kind = COPY_OUT, .run_bytes = 8, .dims = 1, .count = {ROWS},
                      .here = {WIDE * 8}, .there = {WIDE * 8}, .device = there,
                      .host = (char *)copied};
    BoxCopy back_in = column; /* of what the other queue brings, to the next column */
    back_in.kind = COPY_IN, back_in.device += 8;
    for (int64_t k = 0; k < ROWS * WIDE; k++) on_device[k] = element(k), copied[k] = 0;
    CHECK(d->copy(device, QUEUE_OUT, &column));
    CHECK(d->wait(device, QUEUE_IN, device, d->record(device, QUEUE_OUT)));
    CHECK(d->copy(device, QUEUE_IN, &back_in) && d->finish(device)); /* the last stream first */
    for (int64_t k = 0; k < ROWS; k++) CHECK(on_device[k * WIDE + 1] == element(k * WIDE));
    CHECK(told("fake_pinned") == 4);
    d->close(device);
    CHECK(!told("fake_pinned"));
}

static void test_cuda_machine_code(void)
{
    static const KernelCubin cubins[] = {
        {"other", "\x7f" "ELFo", 90, 0}, {"fill", "\x7f" "ELF8", 80, 0}, {"fill", "\x7f" "ELFc", 100, 0},
        {"fill", "\x7f" "ELFn", 91, 0},  {"fill", "\x7f" "ELF9", 90, 0}, {"fill", "\x7f" "ELF!", 90, 1},
    };
    static const struct {
        int64_t first, count, loaded;
    } tried[] = {{0, 5, '9'}, {0, 4, 0}, {0, 0, 0}, {5, 1, 0}};
    static const int64_t offsets[2] = {0, 8};
    for (size_t k = 0; k < sizeof tried / sizeof *tried; k++) {
        avial_cubins = cubins + tried[k].first, avial_cubin_count = tried[k].count;
        avial_driver = DRIVER_CUDA;
        two_devices();
        Adding a = {(int64_t *)avial_at(2, 0, (char *)host), 41};
        DeviceKernel fills = {add, NULL, ".version 7.8", "fill", offsets, 2};
        CHECK(a.at && avial_touch(2, 0, 1) && avial_launch_at(2, &fills, &a, sizeof a, 0));
        CHECK(cuda_driver.finish(place_of(2)->device));
        CHECK(told("fake_loaded") == tried[k].loaded && a.at[0] == 42);
        CHECK(avial_places_end());
        avial_places_drop();
    }
    avial_driver = DRIVER_APART, avial_cubins = NULL, avial_cubin_count = 0;
}

/* Whoever waits for a point waits for what was put before it, be it recorded or long overwritten; and
 * the driver hears of no point that nobody waits for. */
static void test_cuda_events(void)
{
    const Driver *d = &cuda_driver;
    void *device = opened();
    static Event_ points[2000];
    int64_t known = 0, before = told("fake_records");
    BoxCopy within = {.kind = COPY_WITHIN, .device = d->allocate(device, 16), .run_bytes = 8};
    within.source = within.device + 8;
    for (int64_t k = 0; k < 2000; k++) {
        CHECK(d->copy(device, QUEUE_KERNELS, &within));
        points[k] = d->record(device, QUEUE_KERNELS);
        if (k % 7 != 3) continue;
        int64_t asked = k - random_in(0, k < 300 ? k + 1 : 300);
        int64_t waits = told("fake_waits");
        CHECK(d->synchronise(device, points[asked]));
        if (told("fake_waits") > waits && told("fake_over") > known) known = told("fake_over");
        CHECK(known >= asked + 1);
        CHECK(d->wait(device, QUEUE_OUT, device, points[asked]));
    }
    CHECK(told("fake_records") - before <= 2000 / 7 + 1);
    CHECK(d->record(device, QUEUE_IN) && told("fake_records") - before <= 2000 / 7 + 1);
    d->close(device);
}

/* Memory and a stream that others have. */
static void test_cuda_others(void)
{
    const Driver *d = &cuda_driver;
    void *device = opened(), *second = d->open(1);
    uint64_t there = d->allocate(device, 80), stream = (uint64_t)(uintptr_t)calloc(1, 64);
    CHECK(d->holds(device, there, 80) && d->holds(device, there + 40, 40));
    CHECK(d->holds(device, there + 800, 0));
    CHECK(!d->holds(device, there + 40, 48) && strstr(d->why(), "beyond"));
    CHECK(!d->holds(device, there + 80, 8) && strstr(d->why(), "freed"));
    CHECK(!d->holds(second, there, 80) && strstr(d->why(), "GPU 0, and the program runs on GPU 1"));
    int64_t before = told("fake_records");
    CHECK(d->after(device, stream) && told("fake_records") == before + 1);
    d->close(second), d->close(device), free((void *)(uintptr_t)stream);
}

static void test_cuda_newer_ptx(void)
{
    void *device = opened();
    CHECK(!cuda_driver.load(device, ".version 99.0"));
    CHECK(strstr(cuda_driver.why(), "one of CUDA 13.0"));
    CHECK(!cuda_driver.load(device, "not PTX") && strstr(cuda_driver.why(), "line 1: not PTX"));
    cuda_driver.close(device);
}

static void test_cuda_another_device(void)
{
    CHECK(!cuda_driver.open(2) && strstr(cuda_driver.why(), "GPU 2 is asked for, and there are 2"));
}

static void test_cuda_no_driver(void)
{
    avial_libcuda = "libcuda-that-is-not-there.so.1";
    CHECK(cuda_driver.count() == -1 && !cuda_driver.open(0));
    CHECK(strstr(cuda_driver.why(), "there is no NVIDIA driver"));
    avial_libcuda = "libc.so.6";
    CHECK(cuda_driver.count() == -1 && strstr(cuda_driver.why(), "too old"));
}

static const struct {
    const char *name;
    void (*run)(void);
} TESTS[] = {
    {"memory is apart and poisoned", test_memory_is_apart_and_poisoned},
    {"late", test_late},
    {"seeded", test_seeded},
    {"the host's memory is read late", test_the_host_s_memory_is_read_late},
    {"what no device can launch", test_what_no_device_can_launch},
    {"a box there and back", test_a_box_there_and_back},
    {"from device to device", test_from_device_to_device},
    {"a copy in again", test_a_copy_in_again},
    {"between ranks", test_between_ranks},
    {"what is not ours", test_what_is_not_ours},
    {"memory is taken again", test_memory_is_taken_again},
    {"memory is kept", test_memory_is_kept},
    {"what a run wrote is undone", test_what_a_run_wrote_is_undone},
    {"a limit", test_a_limit},
    {"memory by granules", test_memory_by_granules},
    {"null counts", test_null_counts},
    {"cuda copies and launches", test_cuda_copies_and_launches},
    {"cuda: packed boxes", test_cuda_packed_boxes},
    {"cuda: machine code", test_cuda_machine_code},
    {"cuda: memory by granules", test_cuda_maps},
    {"cuda: events", test_cuda_events},
    {"cuda: memory and streams of others", test_cuda_others},
    {"cuda: newer ptx", test_cuda_newer_ptx},
    {"cuda: another device", test_cuda_another_device},
    {"cuda: no driver", test_cuda_no_driver},
};

int main(int count, char **arguments)
{
    avial_libcuda = "./libfakecuda.so";
    for (size_t k = 0; k < sizeof TESTS / sizeof *TESTS; k++) {
        if (count < 2) puts(TESTS[k].name); /* the list of them */
        else if (!strcmp(arguments[1], TESTS[k].name)) {
            TESTS[k].run();
            give_back(false), avial_places_drop();
            return 0;
        }
    }
    return count > 1;
}
