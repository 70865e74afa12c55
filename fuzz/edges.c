/* Counts the edges that code compiled with -fsanitize-coverage=trace-pc takes. Loaded before that code. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EDGES (1 << 16)

/* How often each edge was taken in this run, up to 255. */
static uint8_t taken[EDGES] __attribute__((aligned(8)));
/* One bit for each order of magnitude that was ever reached. */
static uint8_t reached[EDGES];
static uintptr_t before;

void __sanitizer_cov_trace_pc(void) {
    uintptr_t here = (uintptr_t)__builtin_return_address(0);
    uint8_t *count = &taken[((here ^ before >> 1) * UINT64_C(0x9E3779B97F4A7C15)) >> 48];
    before = here;
    if (*count < UINT8_MAX) ++*count;
}

/* 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, and more. */
static uint8_t magnitude(uint8_t count) {
    if (count < 4) return (uint8_t)(1 << (count - 1));
    return count < 8 ? 8 : count < 16 ? 16 : count < 32 ? 32 : count < 128 ? 64 : 128;
}

/* Starts a run. */
void edges_clear(void) {
    memset(taken, 0, EDGES);
    before = 0;
}

/* Returns how many edges reached a new order of magnitude in this run. */
size_t edges_new(void) {
    size_t found = 0;
    for (size_t index = 0; index < EDGES; index++) {
        /* Most are not taken. */
        while (index % 8 == 0 && index < EDGES && *(const uint64_t *)&taken[index] == 0) index += 8;
        if (index >= EDGES || taken[index] == 0) continue;
        uint8_t bit = magnitude(taken[index]);
        if (reached[index] & bit) continue;
        reached[index] |= bit;
        found++;
    }
    return found;
}
