// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// A C++ version of package tally for rings of layout v4. It computes the sum of each
// type and the distributions of sizes by direction, transfer times, post times and
// throughputs, with minimum, maximum and last value. It checks that each transfer
// has a complete group of four events. Like the Go code, it reads the events in
// place, stores the read position once, and uses the same bucket search.
//
//   tally PATH  for each line "N" on standard input, push and drain the events that
//               the ring at PATH has at the start N times, and print the median ns
//               per event of a drain
//
//   g++ -std=c++20 -O3 -march=native -o tally tally.cpp

#include "../interop/ring.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <fcntl.h>
#include <iostream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace interop;
using Clock = std::chrono::steady_clock;

enum Type : uint32_t { TxBytes, RxBytes, TxRequests, RxRequests, Registered, Deregistered, Time, PostTime, Types = 21 };

// Finds the bucket of a value without a search, if there is at most one bound
// between two powers of two.
struct Scale {
    std::vector<uint64_t> limits;
    uint64_t cells[65] = {};

    explicit Scale(std::vector<uint64_t> bounds) : limits(std::move(bounds)) {
        for (int bits = 1; bits <= 48; bits++) {
            const uint64_t first = search(1ull << (bits - 1)), last = search((1ull << bits) - 1);
            cells[bits] = first == last ? first << 59 : (last << 59) - (limits[first] + 1);
        }
    }
    uint64_t search(uint64_t v) const {
        return static_cast<uint64_t>(std::lower_bound(limits.begin(), limits.end(), v) - limits.begin());
    }
    uint64_t bucket(uint64_t v) const {
        if (v >> 48) return search(v);
        return (v + cells[std::bit_width(v)]) >> 59;
    }
};

struct Distribution {
    const Scale &scale;
    uint64_t counts[32] = {}, min = UINT64_MAX, max = 0, last = 0;
    unsigned __int128 sum = 0;

    void record(uint64_t v) {
        counts[scale.bucket(v)]++;
        sum += v;
        min = std::min(min, v);
        max = std::max(max, v);
        last = v;
    }
};

struct Total {
    uint64_t events = 0, last = 0;
    unsigned __int128 sum = 0;

    void record(uint64_t v) {
        events++;
        sum += v;
        last = v;
    }
};

struct Totals {
    const Scale micros{{10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 5000000, 10000000}};
    const Scale bytes{{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30, 1ull << 32, 1ull << 34}};
    const Scale rates{{1000000, 3000000, 10000000, 30000000, 100000000, 300000000, 1000000000, 2000000000, 5000000000, 10000000000, 20000000000, 50000000000, 100000000000, 200000000000, 400000000000, 1000000000000}};
    Distribution sizes[2] = {{bytes}, {bytes}}, took{micros}, post{micros}, throughput[2] = {{rates}, {rates}};
    Total counters[Types];
    uint64_t unknown = 0, torn = 0;
    uint32_t seen = 0; // of the open group: post time, transfer time, bytes
    uint64_t seen_took = 0, seen_bytes = 0;

    // Counts contiguous events.
    void add(const EventV3 *e, const EventV3 *end) {
        while (e != end) {
            if (end - e >= 4 && seen == 0 && group(e))
                e += 4;
            else
                one(*e++);
        }
    }

    bool group(const EventV3 *e) {
        const uint32_t direction = e[2].type - TxBytes;
        if (e[0].type != PostTime || e[1].type != Time || direction > 1 || e[3].type != TxRequests + direction) return false;
        post.record(e[0].value);
        took.record(e[1].value);
        sizes[direction].record(e[2].value);
        counters[e[3].type].record(e[3].value);
        measure(direction, e[2].value, e[1].value);
        return true;
    }

    // Bytes per second, rounded down.
    void measure(uint32_t direction, uint64_t bytes, uint64_t micros) {
        if ((bytes | micros) >> 33 == 0 && micros != 0)
            throughput[direction].record(static_cast<uint64_t>(static_cast<double>(bytes * 1000000) / static_cast<double>(micros)));
        else
            throughput[direction].record(static_cast<uint64_t>(std::min<unsigned __int128>(
                static_cast<unsigned __int128>(bytes) * 1000000 / std::max<uint64_t>(micros, 1), UINT64_MAX)));
    }

    void one(const EventV3 &e) {
        follow(e);
        switch (e.type) {
        case TxBytes:
        case RxBytes: sizes[e.type].record(e.value); break;
        case Time: took.record(e.value); break;
        case PostTime: post.record(e.value); break;
        default:
            if (e.type < Types) counters[e.type].record(e.value);
            else unknown++;
        }
    }

    void follow(const EventV3 &e) {
        uint32_t at = 0;
        switch (e.type) {
        case PostTime: at = 1; break;
        case Time: at = 2; seen_took = e.value; break;
        case TxBytes:
        case RxBytes: at = 4; seen_bytes = e.value; break;
        case TxRequests:
        case RxRequests: at = 8; break;
        }
        if (at <= seen) {
            torn += seen != 0;
            seen = 0;
        }
        seen |= at;
        if (at == 8) {
            torn += seen != 15;
            if (seen == 15) measure(e.type - TxRequests, seen_bytes, seen_took);
            seen = 0;
        }
    }
};

struct Ring {
    EventV3 *slots;
    uint64_t mask;
    std::atomic_ref<uint64_t> write_pos, read_pos;

    explicit Ring(void *memory)
        : slots(reinterpret_cast<EventV3 *>(static_cast<char *>(memory) + sizeof(Header))),
          mask(static_cast<Header *>(memory)->mask), write_pos(static_cast<Header *>(memory)->write_pos),
          read_pos(static_cast<Header *>(memory)->read_pos) {}

    void push(const EventV3 &e) {
        const uint64_t at = write_pos.load(std::memory_order_relaxed), next = (at + 1) & mask;
        if (next == read_pos.load(std::memory_order_acquire)) return;
        slots[at] = e;
        write_pos.store(next, std::memory_order_release);
    }

    __attribute__((noinline)) void drain(Totals &totals) {
        const uint64_t from = read_pos.load(std::memory_order_relaxed), to = write_pos.load(std::memory_order_acquire);
        if (from <= to) {
            totals.add(slots + from, slots + to);
        } else {
            totals.add(slots + from, slots + mask + 1);
            totals.add(slots, slots + to);
        }
        read_pos.store(to, std::memory_order_release);
    }
};

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const int fd = open(argv[1], O_RDWR);
    if (fd < 0) die("open");
    struct stat st;
    if (fstat(fd, &st) != 0) die("fstat");
    void *memory = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) die("mmap");
    Ring ring(memory);
    const std::vector<EventV3> events(ring.slots, ring.slots + ring.write_pos.load());
    Totals totals;
    ring.drain(totals);
    for (int rounds; std::cin >> rounds;) {
        std::vector<double> took;
        for (int i = 0; i < rounds; i++) {
            for (const EventV3 &event : events) ring.push(event);
            const auto start = Clock::now();
            ring.drain(totals);
            took.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
        }
        std::nth_element(took.begin(), took.begin() + rounds / 2, took.end());
        std::cout << took[rounds / 2] / static_cast<double>(events.size()) << std::endl;
    }
    // The use of totals prevents that the compiler removes them.
    if (totals.sizes[0].last == 0 || totals.torn != 0) std::exit(1);
}
