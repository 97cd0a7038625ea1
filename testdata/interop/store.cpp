// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// store writes a store like an agent with NIXL's prometheus_mp exporter, and kills
// itself with SIGKILL at a random moment after a number of transfers. It is written
// only from the description of the format.
//
//     store DIRECTORY AGENT TRANSFERS

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

constexpr uint64_t magic = 0x3153504d4c58494e; // NIXLMPS1
constexpr int types = 21, max_bounds = 32;
constexpr int tx_bytes = 0, tx_requests = 2, xfer_time = 6, post_time = 7;

struct Store {
    uint64_t magic;
    uint32_t version, types;
    int64_t pid;
    uint64_t updated, instance, bound_count;
    char agent[256], host[128], rank[64];
    double bounds[max_bounds];
    uint64_t counters[::types], gauges[::types];
    uint64_t buckets[::types][max_bounds + 1];
    uint64_t sums[::types];
};
static_assert(sizeof(Store) == 6800);

static void check(bool ok, const char *what) {
    if (!ok) {
        std::perror(what);
        std::exit(1);
    }
}

static uint64_t now(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

static void count(Store *s, int type, uint64_t value) {
    __atomic_fetch_add(&s->counters[type], value, __ATOMIC_RELAXED);
    __atomic_store_n(&s->gauges[type], value, __ATOMIC_RELAXED);
    if (type == xfer_time || type == post_time) {
        auto bucket = std::lower_bound(s->bounds, s->bounds + s->bound_count, double(value)) - s->bounds;
        __atomic_fetch_add(&s->buckets[type][bucket], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&s->sums[type], value, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&s->updated, now(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        std::cerr << "usage: store DIRECTORY AGENT TRANSFERS\n";
        return 2;
    }
    const std::string directory = argv[1], agent = argv[2];
    const uint64_t transfers = std::stoull(argv[3]);
    const std::string path = directory + "/nixl." + std::to_string(getpid()) + "." +
        std::to_string(now(CLOCK_REALTIME)) + ".0.mmap";
    const std::string staging = path + ".staging";

    int fd = open(staging.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    check(fd >= 0, staging.c_str());
    check(flock(fd, LOCK_EX | LOCK_NB) == 0, "flock");
    check(ftruncate(fd, sizeof(Store)) == 0, "ftruncate");
    void *memory = mmap(nullptr, sizeof(Store), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(memory != MAP_FAILED, "mmap");
    auto *s = static_cast<Store *>(memory);
    s->version = 1;
    s->types = types;
    s->pid = getpid();
    for (double bound : {10.0, 100.0, 1000.0}) {
        s->bounds[s->bound_count++] = bound;
    }
    std::snprintf(s->agent, sizeof(s->agent), "%s", agent.c_str());
    std::snprintf(s->host, sizeof(s->host), "host");
    s->updated = now(CLOCK_MONOTONIC);
    __atomic_store_n(&s->magic, magic, __ATOMIC_RELEASE);
    check(rename(staging.c_str(), path.c_str()) == 0, "rename");
    std::cout << path << std::endl;

    // The kill interrupts the other thread at a random point.
    std::atomic<uint64_t> done{0};
    std::thread work([&] {
        for (uint64_t i = 0;; i++) {
            count(s, post_time, i % 13);
            count(s, xfer_time, i % 2003);
            count(s, tx_bytes, i % 4096);
            count(s, tx_requests, 1);
            done.store(i + 1, std::memory_order_relaxed);
        }
    });
    while (done.load(std::memory_order_relaxed) < transfers) {
        std::this_thread::yield();
    }
    kill(getpid(), SIGKILL);
    work.join();
}
