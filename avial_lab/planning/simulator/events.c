/* Activities -> when each begins and ends, on resources that they share.
 *
 * An activity waits for others, then for its latency, then works off its amount at a rate: at most
 * its cap, and at most what max-min fairness leaves it of each resource that it uses. Rates change
 * only where an activity on a resource begins or ends, and only among those connected with it by
 * shared resources; between two changes everything is linear in time (a fluid model: Bertsekas and
 * Gallager, Data Networks, section 6.5.2; Casanova et al. 2014 for its use in simulators).
 *
 *     rate[a] = weight[a] * level,  sum over a of factor[a, r] * rate[a] <= capacity[r]
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t n;
    const double *amount, *latency, *cap, *weight; /* weight may be NULL: 1 each */
    const int64_t *use_begin;                      /* n + 1: its entries in use_resource */
    const int32_t *use_resource;
    const double *use_factor; /* may be NULL: 1 each */
    int64_t resources;
    const double *capacity;
    const int64_t *after_begin; /* n + 1: its entries in after */
    const int32_t *after;
    double *start, *flow, *end; /* results: ready, latency over, done */
    int64_t log_room;           /* rates that changed, as many as there is room for */
    double *log_time, *log_rate;
    int32_t *log_activity;
    int64_t events, logged; /* results: counts */
} Run;

typedef struct {
    double time;
    int32_t activity;
} Entry;

enum { WAITING, LATENT, FLOWING, DONE };

typedef struct {
    Run *run;
    double now;
    /* a heap of four children each, by time, then number; where[a]: its place in it, or -1 */
    Entry *heap;
    int32_t *where;
    int64_t size;
    double *left, *rate, *since; /* of the amount, as of the time `since` */
    int32_t *waits;
    uint8_t *state;
    int64_t *next_begin;
    int32_t *next;
    /* the flows of each resource as lists of entries of use_resource */
    int32_t *head, *follow, *before, *owner;
    /* resources whose flows have changed; what is connected with them */
    int32_t *dirty, *near, *flows, *open;
    int64_t dirties;
    int64_t *seen_resource, *seen_flow;
    int64_t stamp;
    uint8_t *is_dirty, *lowest;
    double *room, *sum, *ratio, *best;
    int32_t *ready;
    int64_t readies, done;
} Sim;

static int sooner(Entry a, Entry b) {
    return a.time < b.time || (a.time == b.time && a.activity < b.activity);
}

static void put(Sim *s, int64_t k, Entry entry) {
    s->heap[k] = entry;
    s->where[entry.activity] = (int32_t)k;
}

static void up(Sim *s, int64_t k, Entry entry) {
    while (k > 0) {
        int64_t parent = (k - 1) / 4;
        if (!sooner(entry, s->heap[parent])) break;
        put(s, k, s->heap[parent]);
        k = parent;
    }
    put(s, k, entry);
}

static void down(Sim *s, int64_t k, Entry entry) {
    for (;;) {
        int64_t first = 4 * k + 1, last = first + 4, least = first;
        if (first >= s->size) break;
        if (last > s->size) last = s->size;
        for (int64_t c = first + 1; c < last; c++)
            if (sooner(s->heap[c], s->heap[least])) least = c;
        if (!sooner(s->heap[least], entry)) break;
        put(s, k, s->heap[least]);
        k = least;
    }
    put(s, k, entry);
}

static void expect(Sim *s, int32_t activity, double time) {
    Entry entry = {time, activity};
    int64_t k = s->where[activity];
    if (k < 0) {
        up(s, s->size++, entry);
    } else if (sooner(entry, s->heap[k])) {
        up(s, k, entry);
    } else {
        down(s, k, entry);
    }
}

static int32_t pop(Sim *s) {
    int32_t activity = s->heap[0].activity;
    Entry last = s->heap[--s->size];
    s->where[activity] = -1;
    if (s->size > 0) down(s, 0, last);
    return activity;
}

static void touch(Sim *s, int32_t resource) {
    if (s->is_dirty[resource]) return;
    s->is_dirty[resource] = 1;
    s->dirty[s->dirties++] = resource;
}

static void finish(Sim *s, int32_t a) {
    Run *r = s->run;
    r->end[a] = s->now;
    s->state[a] = DONE;
    s->done++;
    r->events++;
    for (int64_t k = s->next_begin[a]; k < s->next_begin[a + 1]; k++)
        if (--s->waits[s->next[k]] == 0) s->ready[s->readies++] = s->next[k];
}

static void leave(Sim *s, int32_t a) {
    Run *r = s->run;
    for (int64_t e = r->use_begin[a]; e < r->use_begin[a + 1]; e++) {
        int32_t resource = r->use_resource[e];
        if (s->before[e] < 0) s->head[resource] = s->follow[e];
        else s->follow[s->before[e]] = s->follow[e];
        if (s->follow[e] >= 0) s->before[s->follow[e]] = s->before[e];
        touch(s, resource);
    }
}

static void log_rate(Sim *s, int32_t a, double rate) {
    Run *r = s->run;
    if (r->logged < r->log_room) {
        r->log_time[r->logged] = s->now;
        r->log_activity[r->logged] = a;
        r->log_rate[r->logged] = rate;
    }
    r->logged++;
}

static void begin_flow(Sim *s, int32_t a) {
    Run *r = s->run;
    r->flow[a] = s->now;
    r->events++;
    if (r->amount[a] <= 0) {
        finish(s, a);
        return;
    }
    s->state[a] = FLOWING;
    s->left[a] = r->amount[a];
    s->since[a] = s->now;
    s->rate[a] = 0;
    if (r->use_begin[a] == r->use_begin[a + 1]) { /* nobody shares with it */
        s->rate[a] = r->cap[a];
        if (r->log_room) log_rate(s, a, r->cap[a]);
        expect(s, a, s->now + r->amount[a] / r->cap[a]);
        return;
    }
    for (int64_t e = r->use_begin[a]; e < r->use_begin[a + 1]; e++) {
        int32_t resource = r->use_resource[e];
        s->before[e] = -1;
        s->follow[e] = s->head[resource];
        if (s->follow[e] >= 0) s->before[s->follow[e]] = (int32_t)e;
        s->head[resource] = (int32_t)e;
        touch(s, resource);
    }
}

static void begin(Sim *s, int32_t a) {
    Run *r = s->run;
    r->start[a] = s->now;
    if (r->latency[a] > 0) {
        s->state[a] = LATENT;
        expect(s, a, s->now + r->latency[a]);
    } else {
        begin_flow(s, a);
    }
}

/* All flows and resources connected with a dirty resource: into s->flows and s->near. */
static int64_t connected(Sim *s, int32_t from, int64_t *resources) {
    Run *r = s->run;
    int64_t flows = 0, found = 0;
    s->near[found++] = from;
    s->seen_resource[from] = s->stamp;
    for (int64_t k = 0; k < found; k++) {
        for (int32_t e = s->head[s->near[k]]; e >= 0; e = s->follow[e]) {
            int32_t a = s->owner[e];
            if (s->seen_flow[a] == s->stamp) continue;
            s->seen_flow[a] = s->stamp;
            s->flows[flows++] = a;
            for (int64_t u = r->use_begin[a]; u < r->use_begin[a + 1]; u++) {
                int32_t resource = r->use_resource[u];
                if (s->seen_resource[resource] == s->stamp) continue;
                s->seen_resource[resource] = s->stamp;
                s->near[found++] = resource;
            }
        }
    }
    *resources = found;
    return flows;
}

/* The level of every flow in s->flows, into s->best: progressive filling, all resources at once
 * that are the tightest for each of their flows. (Nothing that happens elsewhere can loosen or
 * tighten those: what other flows leave behind only raises the ratios around them.) */
static void fill(Sim *s, int64_t flows, int64_t resources) {
    Run *r = s->run;
    int64_t open = flows;
    memcpy(s->open, s->flows, (size_t)flows * sizeof *s->open);
    for (int64_t k = 0; k < resources; k++) s->room[s->near[k]] = r->capacity[s->near[k]];
    while (open > 0) {
        for (int64_t k = 0; k < resources; k++) s->sum[s->near[k]] = 0;
        for (int64_t k = 0; k < open; k++) {
            int32_t a = s->open[k];
            double weight = r->weight ? r->weight[a] : 1;
            for (int64_t e = r->use_begin[a]; e < r->use_begin[a + 1]; e++)
                s->sum[r->use_resource[e]] += weight * (r->use_factor ? r->use_factor[e] : 1);
        }
        for (int64_t k = 0; k < resources; k++) {
            int32_t resource = s->near[k];
            s->ratio[resource] =
                s->sum[resource] > 0 ? s->room[resource] / s->sum[resource] : INFINITY;
            s->lowest[resource] = 1;
        }
        for (int64_t k = 0; k < open; k++) {
            int32_t a = s->open[k];
            double level = r->cap[a] / (r->weight ? r->weight[a] : 1);
            for (int64_t e = r->use_begin[a]; e < r->use_begin[a + 1]; e++)
                if (s->ratio[r->use_resource[e]] < level) level = s->ratio[r->use_resource[e]];
            s->best[a] = level;
            for (int64_t e = r->use_begin[a]; e < r->use_begin[a + 1]; e++)
                if (s->ratio[r->use_resource[e]] > level) s->lowest[r->use_resource[e]] = 0;
        }
        int64_t kept = 0;
        for (int64_t k = 0; k < open; k++) {
            int32_t a = s->open[k];
            double weight = r->weight ? r->weight[a] : 1, level = s->best[a];
            int settled = r->cap[a] / weight <= level;
            for (int64_t e = r->use_begin[a]; !settled && e < r->use_begin[a + 1]; e++) {
                int32_t resource = r->use_resource[e];
                settled = s->lowest[resource] && s->ratio[resource] <= level;
            }
            if (!settled) {
                s->open[kept++] = a;
                continue;
            }
            for (int64_t e = r->use_begin[a]; e < r->use_begin[a + 1]; e++) {
                int32_t resource = r->use_resource[e];
                double taken = weight * level * (r->use_factor ? r->use_factor[e] : 1);
                s->room[resource] = s->room[resource] > taken ? s->room[resource] - taken : 0;
            }
        }
        if (kept == open) return; /* only where a number is not one: what is left has its level */
        open = kept;
    }
}

static void share(Sim *s) {
    Run *r = s->run;
    s->stamp++;
    for (int64_t d = 0; d < s->dirties; d++) {
        int32_t from = s->dirty[d];
        int64_t resources;
        s->is_dirty[from] = 0;
        if (s->head[from] < 0 || s->seen_resource[from] == s->stamp) continue;
        int64_t flows = connected(s, from, &resources);
        fill(s, flows, resources);
        for (int64_t k = 0; k < flows; k++) {
            int32_t a = s->flows[k];
            double rate = s->best[a] * (r->weight ? r->weight[a] : 1);
            if (rate == s->rate[a]) continue;
            double left = s->left[a] - s->rate[a] * (s->now - s->since[a]);
            s->left[a] = left > 0 ? left : 0;
            s->since[a] = s->now;
            s->rate[a] = rate;
            if (r->log_room) log_rate(s, a, rate);
            expect(s, a, s->now + s->left[a] / rate);
        }
    }
    s->dirties = 0;
}

static void work(Sim *s) {
    for (;;) {
        while (s->readies > 0) begin(s, s->ready[--s->readies]);
        if (s->size > 0 && s->heap[0].time <= s->now) {
            int32_t a = pop(s);
            if (s->state[a] == LATENT) {
                begin_flow(s, a);
            } else {
                if (s->run->log_room) log_rate(s, a, 0);
                leave(s, a);
                finish(s, a);
            }
            continue;
        }
        if (s->dirties > 0) {
            share(s);
            continue;
        }
        if (s->size == 0 || s->heap[0].time == INFINITY) return;
        s->now = s->heap[0].time;
    }
}

/* What follows whom, from what waits for whom. */
static void turn_around(Sim *s) {
    Run *r = s->run;
    int64_t n = r->n;
    for (int64_t k = 0; k < r->after_begin[n]; k++) s->next_begin[r->after[k] + 1]++;
    for (int64_t a = 0; a < n; a++) s->next_begin[a + 1] += s->next_begin[a];
    for (int64_t a = 0; a < n; a++)
        for (int64_t k = r->after_begin[a]; k < r->after_begin[a + 1]; k++)
            s->next[s->next_begin[r->after[k]]++] = (int32_t)a;
    for (int64_t a = n; a > 0; a--) s->next_begin[a] = s->next_begin[a - 1];
    s->next_begin[0] = 0;
}

/* How many activities ended: fewer than n where they wait in a circle; -1 without memory. */
int64_t avial_simulate(Run *r) {
    Sim sim = {0}, *s = &sim;
    size_t n = (size_t)r->n + 1, m = (size_t)r->resources + 1;
    size_t uses = (size_t)r->use_begin[r->n] + 1, edges = (size_t)r->after_begin[r->n] + 1;
    struct {
        void **place;
        size_t size;
    } parts[] = {
        {(void **)&s->heap, n * sizeof(Entry)},       {(void **)&s->where, n * sizeof(int32_t)},
        {(void **)&s->left, n * sizeof(double)},      {(void **)&s->rate, n * sizeof(double)},
        {(void **)&s->since, n * sizeof(double)},     {(void **)&s->waits, n * sizeof(int32_t)},
        {(void **)&s->state, n},                      {(void **)&s->next_begin, (n + 1) * sizeof(int64_t)},
        {(void **)&s->next, edges * sizeof(int32_t)}, {(void **)&s->head, m * sizeof(int32_t)},
        {(void **)&s->follow, uses * sizeof(int32_t)},
        {(void **)&s->before, uses * sizeof(int32_t)},
        {(void **)&s->owner, uses * sizeof(int32_t)}, {(void **)&s->dirty, m * sizeof(int32_t)},
        {(void **)&s->near, m * sizeof(int32_t)},     {(void **)&s->flows, n * sizeof(int32_t)},
        {(void **)&s->open, n * sizeof(int32_t)},
        {(void **)&s->seen_resource, m * sizeof(int64_t)},
        {(void **)&s->seen_flow, n * sizeof(int64_t)},
        {(void **)&s->is_dirty, m},                   {(void **)&s->lowest, m},
        {(void **)&s->room, m * sizeof(double)},      {(void **)&s->sum, m * sizeof(double)},
        {(void **)&s->ratio, m * sizeof(double)},     {(void **)&s->best, n * sizeof(double)},
        {(void **)&s->ready, n * sizeof(int32_t)},
    };
    size_t count = sizeof parts / sizeof *parts;
    int whole = 1;
    for (size_t k = 0; k < count; k++) {
        *parts[k].place = calloc(1, parts[k].size);
        whole = whole && *parts[k].place;
    }
    if (whole) {
        s->run = r;
        turn_around(s);
        memset(s->head, -1, m * sizeof(int32_t));
        for (int64_t a = r->n - 1; a >= 0; a--) {
            s->where[a] = -1;
            s->waits[a] = (int32_t)(r->after_begin[a + 1] - r->after_begin[a]);
            for (int64_t e = r->use_begin[a]; e < r->use_begin[a + 1]; e++)
                s->owner[e] = (int32_t)a;
            if (s->waits[a] == 0) s->ready[s->readies++] = (int32_t)a;
        }
        work(s);
    }
    for (size_t k = 0; k < count; k++) free(*parts[k].place);
    return whole ? s->done : -1;
}
