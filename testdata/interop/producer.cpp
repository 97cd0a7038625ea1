// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// An independent writer of a telemetry ring. It creates a ring as an agent does, at
// a path that may have an older one, and pushes events.
//
//   producer PATH LAYOUT CAPACITY COUNT SEED
//
// If the ring is full, it waits. It prints "ready" when the ring can be opened, and a
// report at the end.

#include "ring.hpp"

#include <chrono>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace interop;

template <typename Event>
int produce(const char *path, int32_t version, uint64_t capacity, uint64_t count, uint64_t seed) {
    const size_t size = sizeof(Header) + capacity * sizeof(Event);
    const int fd = open(path, O_CREAT | O_RDWR, 0644);
    if (fd < 0) die("open");
    if (ftruncate(fd, static_cast<off_t>(size)) != 0) die("ftruncate");
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) die("mmap");
    close(fd); // as NIXL does

    auto *header = static_cast<Header *>(memory);
    auto *slots = reinterpret_cast<Event *>(static_cast<char *>(memory) + sizeof(Header));
    std::atomic_ref<uint64_t> write_pos(header->write_pos), read_pos(header->read_pos);
    std::atomic_ref<int32_t> ready(header->version);
    write_pos.store(0, std::memory_order_relaxed);
    read_pos.store(0, std::memory_order_relaxed);
    ready.store(0, std::memory_order_relaxed);
    header->capacity = capacity;
    header->mask = capacity - 1;
    header->expected_version = 0;
    ready.store(version, std::memory_order_release);
    header->expected_version = version;
    std::puts("ready");
    std::fflush(stdout);

    Waiter waiter;
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = write_pos.load(std::memory_order_relaxed);
        const uint64_t next = (at + 1) & (capacity - 1);
        while (next == read_pos.load(std::memory_order_acquire)) waiter.wait();
        fill(slots[at], mix(seed, i), i);
        write_pos.store(next, std::memory_order_release);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("{\"pushed\":%llu,\"waits\":%llu,\"seconds\":%.6f}\n",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(waiter.spins()), took.count());
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 6) {
        std::fprintf(stderr, "usage: %s PATH LAYOUT CAPACITY COUNT SEED\n", argv[0]);
        return 2;
    }
    const uint64_t capacity = std::strtoull(argv[3], nullptr, 10);
    const uint64_t count = std::strtoull(argv[4], nullptr, 10), seed = std::strtoull(argv[5], nullptr, 10);
    if (capacity < 2 || (capacity & (capacity - 1))) {
        std::fprintf(stderr, "capacity %s: use a power of two, at least 2\n", argv[3]);
        return 2;
    }
    return with_layout(argv[2], [&](int32_t version, auto event) {
        return produce<decltype(event)>(argv[1], version, capacity, count, seed);
    });
}
