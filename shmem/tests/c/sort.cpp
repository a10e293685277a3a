/* Sample sort: every PE draws samples, all agree on splitters, and each key goes to the PE that its splitters
 * name, into room that was reserved by an atomic. The outcome is compared with a sort on one PE. */

#include "check.h"

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace {

constexpr int KEYS_LEAST = 500, KEYS_MORE = 300, SAMPLES = 16;

/* The program's symmetric state for one type of keys. */
template <typename Key> struct Shared {
    static inline Key drawn[SAMPLES];
    /* Keys in this PE's inbox: reserved, all of them, and those of lower PEs. */
    static inline long reserved, total, before;
};

/* Room of the whole program, named by a variable template. */
template <typename Key> Key *inbox = nullptr;

/* The keys that a PE begins with; any PE can tell. */
template <typename Key> std::vector<Key> keys_of(int pe) {
    std::mt19937_64 random(1234 + pe);
    std::vector<Key> keys(KEYS_LEAST + random() % KEYS_MORE);
    /* Few different ones on odd PEs, so that some are equal to splitters. */
    const auto range = pe % 2 == 0 ? 100000u : 9u;
    std::generate(keys.begin(), keys.end(), [&] { return static_cast<Key>(random() % range) / Key(2); });
    return keys;
}

template <typename Key, typename Less> std::vector<Key> splitters(std::vector<Key> keys, Less less) {
    const int n = shmem_n_pes();
    std::sort(keys.begin(), keys.end(), less);
    for (int i = 0; i < SAMPLES; i++) Shared<Key>::drawn[i] = keys[keys.size() * i / SAMPLES];
    auto *all = static_cast<Key *>(shmem_align(alignof(Key), n * SAMPLES * sizeof(Key)));
    CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, all, Shared<Key>::drawn, SAMPLES) == 0);
    std::sort(all, all + n * SAMPLES, less);
    std::vector<Key> chosen;
    for (int i = 1; i < n; i++) chosen.push_back(all[i * SAMPLES]);
    shmem_free(all);
    return chosen;
}

/* Sends each PE its keys; they come in any order. */
template <typename Key, typename Less>
void distribute(const std::vector<Key> &keys, const std::vector<Key> &chosen, Less less) {
    std::vector<std::vector<Key>> parcels(shmem_n_pes());
    for (const Key &key : keys) {
        const auto to = std::upper_bound(chosen.begin(), chosen.end(), key, less) - chosen.begin();
        parcels[to].push_back(key);
    }
    shmem_ctx_t context;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) == 0);
    for (int i = 0; i < shmem_n_pes(); i++) {
        const int pe = (shmem_my_pe() + i) % shmem_n_pes();
        const auto count = static_cast<long>(parcels[pe].size());
        const long place = shmem_atomic_fetch_add(context, &Shared<Key>::reserved, count, pe);
        shmem_put_nbi(context, inbox<Key> + place, parcels[pe].data(), parcels[pe].size(), pe);
    }
    shmem_ctx_quiet(context);
    shmem_ctx_destroy(context);
    shmem_barrier_all();
}

template <typename Key, typename Less> void sort_all(Less less) {
    const int me = shmem_my_pe(), n = shmem_n_pes();
    std::vector<Key> all;
    for (int pe = 0; pe < n; pe++) {
        const auto some = keys_of<Key>(pe);
        all.insert(all.end(), some.begin(), some.end());
    }
    inbox<Key> = static_cast<Key *>(shmem_malloc(all.size() * sizeof(Key)));
    Shared<Key>::reserved = 0;
    shmem_barrier_all();

    const auto keys = keys_of<Key>(me);
    distribute(keys, splitters(keys, less), less);
    const long count = Shared<Key>::reserved;
    std::sort(inbox<Key>, inbox<Key> + count, less);

    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, &Shared<Key>::total, &Shared<Key>::reserved, 1) == 0);
    CHECK(Shared<Key>::total == static_cast<long>(all.size()));
    CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, &Shared<Key>::before, &Shared<Key>::reserved, 1) == 0);
    const long before = me == 0 ? 0 : Shared<Key>::before;
    std::sort(all.begin(), all.end(), less);
    CHECK(std::equal(inbox<Key>, inbox<Key> + count, all.begin() + before));
    /* What lies on another PE is there as well. */
    std::vector<Key> other(shmem_g(&Shared<Key>::reserved, (me + 1) % n));
    shmem_get(other.data(), inbox<Key>, other.size(), (me + 1) % n);
    CHECK(std::equal(other.begin(), other.end(), all.begin() + (me + 1 == n ? 0 : before + count)));
    shmem_barrier_all();
    shmem_free(inbox<Key>);
}

} // namespace

int main() {
    shmem_init();
    sort_all<int>(std::less<int>());
    sort_all<unsigned long long>(std::greater<unsigned long long>());
    sort_all<double>([](double one, double other) { return one < other; });
    sort_all<long double>(std::less<>());
    shmem_finalize();
    return 0;
}
