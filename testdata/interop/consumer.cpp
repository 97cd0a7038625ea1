// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// An independent reader of a telemetry ring. It pops one event at a time, as
// NIXL's own reader does, and checks each.
//
//   consumer PATH LAYOUT COUNT SEED
//
// It prints "ready" when it has opened the ring, and a report at the end. The exit
// status is 1 if an event differs from the expected one.

#include "ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace interop;

template <typename Event> int consume(const char *path, int32_t version, uint64_t count, uint64_t seed) {
    const int fd = open(path, O_RDWR);
    if (fd < 0) die("open");
    struct stat st;
    if (fstat(fd, &st) != 0) die("fstat");
    void *memory = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) die("mmap");

    auto *header = static_cast<Header *>(memory);
    const auto *slots = reinterpret_cast<const Event *>(static_cast<char *>(memory) + sizeof(Header));
    std::atomic_ref<uint64_t> write_pos(header->write_pos), read_pos(header->read_pos);
    const int32_t found = std::atomic_ref<int32_t>(header->version).load(std::memory_order_acquire);
    if (found != version || header->expected_version != version || header->mask != header->capacity - 1 ||
        static_cast<uint64_t>(st.st_size) != sizeof(Header) + header->capacity * sizeof(Event)) {
        std::fprintf(stderr, "unexpected ring: version %d, capacity %llu, %lld bytes\n", found,
                     static_cast<unsigned long long>(header->capacity), static_cast<long long>(st.st_size));
        return 1;
    }
    std::puts("ready");
    std::fflush(stdout);

    Waiter waiter;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = read_pos.load(std::memory_order_relaxed);
        while (at == write_pos.load(std::memory_order_acquire)) waiter.wait();
        Event want{}, got = slots[at];
        fill(want, mix(seed, i), i);
        if (!same(got, want)) {
            std::fprintf(stderr, "event %llu in slot %llu has value %llx, want %llx, or another field differs\n",
                         static_cast<unsigned long long>(i), static_cast<unsigned long long>(at),
                         static_cast<unsigned long long>(got.value), static_cast<unsigned long long>(want.value));
            return 1;
        }
        read_pos.store((at + 1) & header->mask, std::memory_order_release);
    }
    std::printf("{\"popped\":%llu,\"waits\":%llu}\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(waiter.spins()));
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: %s PATH LAYOUT COUNT SEED\n", argv[0]);
        return 2;
    }
    const uint64_t count = std::strtoull(argv[3], nullptr, 10), seed = std::strtoull(argv[4], nullptr, 10);
    return with_layout(argv[2], [&](int32_t version, auto event) {
        return consume<decltype(event)>(argv[1], version, count, seed);
    });
}
