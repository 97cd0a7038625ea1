// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Numbers with three digits and a unit, as package units formats them. null is a dash.

function scaled(v, step, units) {
  if (v === null || v === undefined) return "–";
  let i = 0;
  while (i < units.length - 1 && Math.abs(v) >= step * 0.9995) {
    v /= step;
    i++;
  }
  const digits = v === 0 ? 0 : Math.abs(v) < 9.995 ? 2 : Math.abs(v) < 99.95 ? 1 : 0;
  return v.toFixed(digits) + "\u2009" + units[i];
}

export const throughput = (v) => scaled(v, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"]);
export const memory = (v) => scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
export const duration = (v) => v === null || v < 1 ? scaled(v === null ? null : v * 1e6, 1000, ["µs", "ms", "s"]) : scaled(v, 1000, ["s", "ks"]);
// Rounded down: only a full ring has 100%.
export const percent = (v) => Math.floor(100 * v + 1e-9) + "\u2009%";
export const rate = (v) => v === 0 ? "0" : v < 9.95 ? v.toFixed(1) : Math.round(v).toLocaleString("en-US");
export const bare = (s) => s.replace(/\.0+(?=\u2009)|(\.\d*?)0+(?=\u2009)/, "$1"); // 2.50 ms becomes 2.5 ms
export function age(seconds) {
  if (seconds < 120) return Math.floor(seconds) + "\u2009s";
  if (seconds < 7200) return Math.floor(seconds / 60) + "\u2009min";
  return seconds < 172800 ? Math.floor(seconds / 3600) + "\u2009h" : Math.floor(seconds / 86400) + "\u2009d";
}
export const clock = (ms, seconds) => new Date(ms).toLocaleTimeString("en-GB", seconds ? {} : { hour: "2-digit", minute: "2-digit" });
