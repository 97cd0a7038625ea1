// The telemetry ring of NIXL agents, written only from the description of its
// format, so that it has no mistakes in common with the Go code that it tests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace interop {

// Another process shares the positions and the version: use only atomic_ref.
struct Header {
    uint64_t write_pos;
    uint64_t read_pos;
    int32_t version;
    int32_t expected_version;
    uint64_t capacity;
    uint64_t mask;
};
static_assert(sizeof(Header) == 40);
static_assert(offsetof(Header, read_pos) == 8 && offsetof(Header, version) == 16);
static_assert(offsetof(Header, expected_version) == 20 && offsetof(Header, capacity) == 24);
static_assert(offsetof(Header, mask) == 32);
static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);

struct EventV1 {
    uint64_t timestamp_us;
    int32_t category;
    char name[32];
    uint32_t pad;
    uint64_t value;
};
static_assert(sizeof(EventV1) == 56 && offsetof(EventV1, name) == 12 && offsetof(EventV1, value) == 48);

struct EventV2 {
    int32_t category;
    uint32_t type;
    uint64_t value;
};
static_assert(sizeof(EventV2) == 16);

struct EventV3 { // and v4
    uint32_t type;
    uint32_t pad;
    uint64_t value;
};
static_assert(sizeof(EventV3) == 16 && offsetof(EventV3, value) == 8);

// splitmix64 of seed and i, which determines all fields of the i-th event. The Go
// test computes the same, so that it finds fields of different events.
inline uint64_t mix(uint64_t seed, uint64_t i) {
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// The low 40 bits are the number of the event, the rest is its checksum.
inline uint64_t value_of(uint64_t h, uint64_t i) { return (i & 0xffffffffffull) | (h >> 40 << 40); }
inline uint32_t type_of(uint64_t h) { return static_cast<uint32_t>(h % 20); }
inline int32_t category_of(uint64_t h) { return static_cast<int32_t>(h >> 8 & 7); }
inline uint64_t time_of(uint64_t h, uint64_t i) { return 1700000000000000ull + i + (h & 0xff) * 1000000; }

// 31 letters and a NUL.
inline void name_of(uint64_t h, char (&name)[32]) {
    for (int at = 0; at < 31; at++)
        name[at] = static_cast<char>('a' + (h >> (at & 15) * 4 & 15));
    name[31] = 0;
}

// Padding may have any value.
inline void fill(EventV1 &e, uint64_t h, uint64_t i) {
    e.timestamp_us = time_of(h, i);
    e.category = category_of(h);
    name_of(h, e.name);
    e.pad = static_cast<uint32_t>(h);
    e.value = value_of(h, i);
}
inline void fill(EventV2 &e, uint64_t h, uint64_t i) {
    e.category = category_of(h);
    e.type = type_of(h);
    e.value = value_of(h, i);
}
inline void fill(EventV3 &e, uint64_t h, uint64_t i) {
    e.type = type_of(h);
    e.pad = static_cast<uint32_t>(h);
    e.value = value_of(h, i);
}

inline bool same(const EventV1 &a, const EventV1 &b) {
    return a.timestamp_us == b.timestamp_us && a.category == b.category && a.value == b.value &&
           !std::memcmp(a.name, b.name, sizeof a.name);
}
inline bool same(const EventV2 &a, const EventV2 &b) {
    return a.category == b.category && a.type == b.type && a.value == b.value;
}
inline bool same(const EventV3 &a, const EventV3 &b) { return a.type == b.type && a.value == b.value; }

// Calls run with the version and an event type of the named layout.
template <typename Run> int with_layout(const std::string &layout, Run run) {
    if (layout == "v1") return run(1, EventV1{});
    if (layout == "v2") return run(2, EventV2{});
    if (layout == "v3") return run(3, EventV3{});
    if (layout == "v4") return run(4, EventV3{});
    std::fprintf(stderr, "unknown layout %s\n", layout.c_str());
    return 2;
}

// Waits for the other side. It spins, and yields at intervals in case both share a
// core.
class Waiter {
public:
    void wait() {
        if (++spins_ % 64 == 0) std::this_thread::yield();
    }
    uint64_t spins() const { return spins_; }

private:
    uint64_t spins_ = 0;
};

[[noreturn]] inline void die(const char *what) {
    std::perror(what);
    std::exit(1);
}

} // namespace interop
