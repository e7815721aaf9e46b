/* A placement and an order -> the makespan, where messages do not slow each other.
 *
 * Each device runs its tasks in that order, each as soon as all it waits for has arrived. What the
 * search asks for after every move: 0.01 µs an edge.
 */
#include <stdint.h>

double avial_list_makespan(int64_t n, int64_t devices, const int32_t *order, const int32_t *device,
                           const double *cost, const int64_t *begin, const int32_t *source,
                           const double *nbytes, const double *latency, const double *per_byte,
                           double *free_at, double *end) {
    double last = 0;
    for (int64_t d = 0; d < devices; d++) free_at[d] = 0;
    for (int64_t k = 0; k < n; k++) {
        int32_t task = order[k], here = device[task];
        double ready = free_at[here];
        for (int64_t e = begin[task]; e < begin[task + 1]; e++) {
            int32_t from = source[e];
            double arrived = end[from];
            if (nbytes[e] > 0) {
                int64_t way = (int64_t)device[from] * devices + here;
                arrived += latency[way] + nbytes[e] * per_byte[way];
            }
            if (arrived > ready) ready = arrived;
        }
        end[task] = free_at[here] = ready + cost[(int64_t)task * devices + here];
        if (end[task] > last) last = end[task];
    }
    return last;
}
