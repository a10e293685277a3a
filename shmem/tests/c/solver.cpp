/* Heat in a plate, by Jacobi's iteration on blocks of a grid of PEs: teams of rows and columns, a context on
 * each, edges that travel with signals, members of templates and inline variables as symmetric memory, and
 * exceptions that leave frames which hold such memory. One PE's solution is the same, bit for bit. */

#include "check.h"

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int ROWS = 23, COLUMNS = 17, STEPS_MAX = 1000, STEPS_OF_A_LOOK = 2;

/* A step has gone beyond all bounds, on all PEs at once. */
struct Diverged : std::runtime_error {
    int step;
    explicit Diverged(int step) : std::runtime_error("after step " + std::to_string(step)), step(step) {}
};

struct NoMemory : std::bad_alloc {};

/* Memory of the symmetric heap, given back by all PEs together, also when an exception leaves its block. */
template <typename T> class Memory {
public:
    explicit Memory(std::size_t count) : start(static_cast<T *>(shmem_calloc(count, sizeof(T)))) {
        if (start == nullptr) throw NoMemory();
        blocks++;
    }
    Memory(Memory &&other) noexcept : start(std::exchange(other.start, nullptr)) {}
    Memory(const Memory &) = delete;
    ~Memory() {
        if (start == nullptr) return;
        shmem_free(start);
        blocks--;
    }
    T &operator[](std::size_t i) const { return start[i]; }
    T *at(std::size_t i) const { return start + i; }
    static inline int blocks = 0;

private:
    T *start;
};

/* A team of this PE's row or column, and a context on it. */
struct Line {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_ctx_t context = SHMEM_CTX_INVALID;
    Line() = default;
    Line(const Line &) = delete;
    ~Line() {
        if (context != SHMEM_CTX_INVALID) shmem_ctx_destroy(context);
        if (team != SHMEM_TEAM_INVALID) shmem_team_destroy(team);
    }
    int place() const { return shmem_team_my_pe(team); }
    int length() const { return shmem_team_n_pes(team); }
};

int width_of_grid(int n) {
    int width = 1;
    for (int i = 1; i * i <= n; i++) {
        if (n % i == 0) width = i;
    }
    return width;
}

/* Begin of the part of a place, if a length is parted among several. */
int begin_of(int length, int place, int places) { return length * place / places; }

template <typename T> T at_start(int row, int column) {
    const bool is_border = row < 0 || column < 0 || row == ROWS || column == COLUMNS;
    return is_border ? T(3 * row + 2 * column) : T((row * 7 + column * 5) % 11);
}

/* One new value; the same instructions for one PE and for many. */
template <typename T>
[[gnu::noinline]] T relaxed(T here, T north, T south, T west, T east, T weight) {
    return here + weight * ((north + south + west + east) / 4 - here);
}

enum Side { NORTH, SOUTH, WEST, EAST, SIDES };

/* A rectangle of the plate with a border of one, twice: before a step and after it. */
template <typename T> class Block {
public:
    /* The number of edges that have come from each side, and the largest changes. Symmetric. */
    static inline std::uint64_t come[SIDES];
    static T change[3];

    Block(const Line &row, const Line &column)
        : row(row), column(column), top(begin_of(ROWS, column.place(), column.length())),
          left(begin_of(COLUMNS, row.place(), row.length())),
          rows(rows_of(column.place())),
          columns(begin_of(COLUMNS, row.place() + 1, row.length()) - left), fields{field(), field()},
          edges{Memory<T>(2 * ROWS), Memory<T>(2 * ROWS)} {
        for (int i = -1; i <= rows; i++) {
            for (int j = -1; j <= columns; j++) {
                fields[0][index(i, j)] = fields[1][index(i, j)] = at_start<T>(top + i, left + j);
            }
        }
        for (auto &count : come) count = 0;
        shmem_barrier_all();
    }

    /* The number of steps until no value changes by more than `enough`. */
    int solve(T weight, T enough) {
        for (int step = 0; step < STEPS_MAX; step++) {
            const T mine = advance(step, weight);
            if (step % STEPS_OF_A_LOOK != STEPS_OF_A_LOOK - 1) continue;
            const T all = largest(mine);
            if (!(all < T(1e6))) throw Diverged(step);
            if (all <= enough) return step + 1;
        }
        return STEPS_MAX;
    }

    /* Compares every PE's block with the whole plate. */
    void compare(const std::vector<T> &plate, int steps) const {
        const int width = row.length(), height = column.length();
        for (int pe = 0; pe < width * height; pe++) {
            const int i = pe / width, j = pe % width;
            std::vector<T> block(stride() * (ROWS + 2));
            if (i == column.place()) {
                shmem_get_nbi(row.context, block.data(), fields[steps % 2].at(0), block.size(), j);
                shmem_ctx_quiet(row.context);
            } else {
                shmem_get(block.data(), fields[steps % 2].at(0), block.size(), pe);
            }
            const int i0 = begin_of(ROWS, i, height), i1 = begin_of(ROWS, i + 1, height);
            const int j0 = begin_of(COLUMNS, j, width), j1 = begin_of(COLUMNS, j + 1, width);
            for (int k = 0; k < ROWS * COLUMNS; k++) {
                const int y = k / COLUMNS, x = k % COLUMNS;
                if (y < i0 || y >= i1 || x < j0 || x >= j1) continue;
                CHECK(block[index(y - i0, x - j0)] == plate[k]);
            }
        }
    }

private:
    static std::size_t stride() { return COLUMNS + 2; }
    static std::size_t index(int i, int j) { return (i + 1) * stride() + (j + 1); }
    static Memory<T> field() { return Memory<T>(stride() * (ROWS + 2)); }

    /* Sends the edges of the values before this step; those of the neighbours come into the border. */
    void exchange(int step) {
        const Memory<T> &values = fields[step % 2];
        const int north = column.place() - 1, south = column.place() + 1;
        const bool has_north = north >= 0, has_south = south < column.length();
        if (has_north) send(values.at(index(rows_of(north), 0)), values.at(index(0, 0)), SOUTH, north);
        if (has_south) send(values.at(index(-1, 0)), values.at(index(rows - 1, 0)), NORTH, south);
        const int west = row.place() - 1, east = row.place() + 1;
        std::vector<T> packed(rows);
        for (int side : {WEST, EAST}) {
            const int neighbour = side == WEST ? west : east;
            if (neighbour < 0 || neighbour >= row.length()) continue;
            for (int i = 0; i < rows; i++) packed[i] = values[index(i, side == WEST ? 0 : columns - 1)];
            const Side from = side == WEST ? EAST : WEST;
            shmem_put_signal(row.context, edges[from - WEST].at(step % 2 * ROWS), packed.data(), packed.size(),
                             &come[from], 1, SHMEM_SIGNAL_ADD, neighbour);
        }
        if (has_north) await(NORTH, step);
        if (has_south) await(SOUTH, step);
        if (west >= 0) unpack(WEST, step, -1);
        if (east < row.length()) unpack(EAST, step, columns);
    }

    /* The number of rows of the block at a place of the column. */
    int rows_of(int place) const {
        return begin_of(ROWS, place + 1, column.length()) - begin_of(ROWS, place, column.length());
    }

    /* Sends an edge above or below. */
    void send(T *dest, const T *source, Side arrives_from, int neighbour) {
        const auto count = static_cast<std::size_t>(columns);
        shmem_put_signal_nbi(column.context, dest, source, count, &come[arrives_from], 1, SHMEM_SIGNAL_ADD,
                             neighbour);
    }

    static void await(Side side, int step) {
        shmem_signal_wait_until(&come[side], SHMEM_CMP_GE, static_cast<std::uint64_t>(step + 1));
    }

    void unpack(Side side, int step, int to) {
        await(side, step);
        for (int i = 0; i < rows; i++) {
            fields[step % 2][index(i, to)] = edges[side - WEST][step % 2 * ROWS + i];
        }
    }

    T advance(int step, T weight) {
        exchange(step);
        const Memory<T> &old = fields[step % 2], &young = fields[(step + 1) % 2];
        T most = 0;
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                const T here = old[index(i, j)];
                const T next = relaxed(here, old[index(i - 1, j)], old[index(i + 1, j)], old[index(i, j - 1)],
                                       old[index(i, j + 1)], weight);
                young[index(i, j)] = next;
                most = std::max(most, std::abs(next - here));
            }
        }
        /* The edges that were sent from the old values have left before those are written again. */
        shmem_ctx_quiet(column.context);
        return most;
    }

    T largest(T mine) {
        change[0] = mine;
        CHECK(shmem_max_reduce(row.team, &change[1], &change[0], 1) == 0);
        CHECK(shmem_max_reduce(column.team, &change[2], &change[1], 1) == 0);
        return change[2];
    }

    const Line &row, &column;
    const int top, left, rows, columns;
    std::array<Memory<T>, 2> fields, edges;
};

template <typename T> T Block<T>::change[3] = {1, 2, 3};

/* The same on one PE: the plate, and the number of steps. */
template <typename T> std::pair<std::vector<T>, int> alone(T weight, T enough) {
    std::vector<T> old(ROWS * COLUMNS), young(ROWS * COLUMNS);
    for (int k = 0; k < ROWS * COLUMNS; k++) old[k] = at_start<T>(k / COLUMNS, k % COLUMNS);
    const auto value = [&old](int i, int j) {
        const bool is_inside = i >= 0 && j >= 0 && i < ROWS && j < COLUMNS;
        return is_inside ? old[i * COLUMNS + j] : at_start<T>(i, j);
    };
    for (int step = 0; step < STEPS_MAX; step++) {
        T most = 0;
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < COLUMNS; j++) {
                const T here = value(i, j);
                const T next = relaxed(here, value(i - 1, j), value(i + 1, j), value(i, j - 1),
                                       value(i, j + 1), weight);
                young[i * COLUMNS + j] = next;
                most = std::max(most, std::abs(next - here));
            }
        }
        std::swap(old, young);
        if (step % STEPS_OF_A_LOOK == STEPS_OF_A_LOOK - 1 && most <= enough) return {old, step + 1};
    }
    return {old, STEPS_MAX};
}

template <typename T> void solve_plate(T enough) {
    Line row, column;
    const int width = width_of_grid(shmem_n_pes());
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, nullptr, 0, &row.team, nullptr, 0, &column.team) == 0);
    CHECK(shmem_team_create_ctx(row.team, 0, &row.context) == 0);
    CHECK(shmem_team_create_ctx(column.team, 0, &column.context) == 0);
    {
        Block<T> block(row, column);
        const int steps = block.solve(T(0.9), enough);
        const auto [plate, steps_alone] = alone(T(0.9), enough);
        CHECK(steps == steps_alone && steps > STEPS_OF_A_LOOK && steps < STEPS_MAX);
        block.compare(plate, steps);
        shmem_barrier_all();
    }
    int caught = -1;
    try {
        Block<T> block(row, column);
        block.solve(T(2.5), enough);
    } catch (const Diverged &problem) {
        CHECK(problem.what() == "after step " + std::to_string(problem.step));
        caught = problem.step;
    }
    CHECK(caught > 0 && Memory<T>::blocks == 0);
}

/* What does not fit is refused on all PEs, while an exception gives back what did. */
void ask_for_too_much() {
    bool is_caught = false;
    try {
        Memory<double> some(100), too_much(std::size_t{1} << 48);
        CHECK(false);
    } catch (const std::bad_alloc &) {
        is_caught = true;
    }
    CHECK(is_caught && Memory<double>::blocks == 0);
}

} // namespace

int main() {
    shmem_init();
    CHECK(shmem_addr_accessible(Block<float>::come, 0) && shmem_addr_accessible(Block<double>::change, 0));
    CHECK(Block<float>::change[2] == 3 && Block<double>::change[2] == 3);
    ask_for_too_much();
    solve_plate<float>(0.02f);
    solve_plate<double>(0.02);
    ask_for_too_much();
    shmem_finalize();
    return 0;
}
