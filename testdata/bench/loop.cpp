// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// A simple reader and a fast writer of a v4 telemetry ring, as references for the
// benchmarks of the Go reader. The reader pops one event at a time and adds up the
// values by type, without histograms.
//
//   loop drain PATH          for each line "N" on standard input, fill and empty
//                            the ring N times, and print the median ns per pop
//   loop produce PATH COUNT  push COUNT events; wait if the ring is full
//   loop consume PATH COUNT  pop COUNT events
//
// The programs push the events that the ring at PATH has at the start, repeatedly.
//
//   g++ -std=c++20 -O3 -o loop loop.cpp

#include "../interop/ring.hpp"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <iostream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace interop;
using Clock = std::chrono::steady_clock;

struct Ring {
    Header *header;
    EventV3 *slots;
    uint64_t mask;
    std::atomic_ref<uint64_t> write_pos, read_pos;

    explicit Ring(void *memory)
        : header(static_cast<Header *>(memory)),
          slots(reinterpret_cast<EventV3 *>(static_cast<char *>(memory) + sizeof(Header))), mask(header->mask),
          write_pos(header->write_pos), read_pos(header->read_pos) {}

    bool push(const EventV3 &e) {
        const uint64_t at = write_pos.load(std::memory_order_relaxed), next = (at + 1) & mask;
        if (next == read_pos.load(std::memory_order_acquire)) return false;
        slots[at] = e;
        write_pos.store(next, std::memory_order_release);
        return true;
    }

    bool pop(EventV3 &e) {
        const uint64_t at = read_pos.load(std::memory_order_relaxed);
        if (at == write_pos.load(std::memory_order_acquire)) return false;
        e = slots[at];
        read_pos.store((at + 1) & mask, std::memory_order_release);
        return true;
    }
};

struct Totals {
    uint64_t sum[32] = {}, count[32] = {};
    void add(const EventV3 &e) {
        sum[e.type & 31] += e.value;
        count[e.type & 31]++;
    }
};

static void *map(const char *path) {
    const int fd = open(path, O_RDWR);
    if (fd < 0) die("open");
    struct stat st;
    if (fstat(fd, &st) != 0) die("fstat");
    void *memory = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) die("mmap");
    return memory;
}

static void drain(Ring &ring, const std::vector<EventV3> &events) {
    Totals totals;
    EventV3 e;
    while (ring.pop(e)) {} // empty the ring
    for (int rounds; std::cin >> rounds;) {
        std::vector<double> took;
        for (int i = 0; i < rounds; i++) {
            for (const EventV3 &event : events) ring.push(event);
            const auto start = Clock::now();
            while (ring.pop(e)) totals.add(e);
            took.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
        }
        std::nth_element(took.begin(), took.begin() + rounds / 2, took.end());
        std::cout << took[rounds / 2] / static_cast<double>(events.size()) << std::endl;
    }
    if (totals.count[0] == 0) std::exit(1); // the use prevents that the compiler removes totals
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    Ring ring(map(argv[2]));
    const std::string what = argv[1];
    const uint64_t count = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
    if (what == "drain") {
        drain(ring, std::vector<EventV3>(ring.slots, ring.slots + ring.write_pos.load()));
        return 0;
    }
    Waiter waiter;
    if (what == "produce") {
        // The ring already has the first events.
        const std::vector<EventV3> events(ring.slots, ring.slots + ring.write_pos.load());
        std::puts("ready");
        std::fflush(stdout);
        for (uint64_t i = events.size(), at = 0; i < count; i++, at = at + 1 == events.size() ? 0 : at + 1)
            while (!ring.push(events[at])) waiter.wait();
        return 0;
    }
    Totals totals;
    EventV3 e;
    std::puts("ready");
    std::fflush(stdout);
    for (uint64_t i = 0; i < count; i++) {
        while (!ring.pop(e)) waiter.wait();
        totals.add(e);
    }
    return totals.count[0] == 0;
}
