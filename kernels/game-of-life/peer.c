// The columns inside are the vector; the first and the last have a neighbour round the edge.
#define LIFE(from, to, j, left, right)                                                             \
  do {                                                                                             \
    const T around = from[up][left] + from[up][j] + from[up][right] + from[i][left] +              \
                     from[i][right] + from[down][left] + from[down][j] + from[down][right];        \
    to[i][j] = (around == 3) | ((around == 2) & (from[i][j] == 1));                                \
  } while (0)

void kernel_game_of_life(int64_t tsteps, T A[restrict ROWS][COLS], T B[restrict ROWS][COLS]) {
#pragma omp parallel
  for (int64_t t = 0; t < tsteps; t++) {
#pragma omp for schedule(static)
    for (long i = 0; i < ROWS; i++) {
      const long up = (i + ROWS - 1) % ROWS, down = (i + 1) % ROWS;
      LIFE(A, B, 0, COLS - 1, 1 % COLS);
      for (long j = 1; j < COLS - 1; j++)
        LIFE(A, B, j, j - 1, j + 1);
      LIFE(A, B, COLS - 1, (2 * COLS - 2) % COLS, 0);
    }
#pragma omp for schedule(static)
    for (long i = 0; i < ROWS; i++) {
      const long up = (i + ROWS - 1) % ROWS, down = (i + 1) % ROWS;
      LIFE(B, A, 0, COLS - 1, 1 % COLS);
      for (long j = 1; j < COLS - 1; j++)
        LIFE(B, A, j, j - 1, j + 1);
      LIFE(B, A, COLS - 1, (2 * COLS - 2) % COLS, 0);
    }
  }
}
#undef LIFE
