// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Charts over time, drawn by uPlot: lines per agent, and heat maps of histograms.

import { clock } from "./units.js";

const uPlot = window.uPlot;
const minute = 60;

let colors = {};

// color returns the value of a CSS variable in the current theme.
function color(name) {
  if (colors[name]) return colors[name];
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  colors[name] = getComputedStyle(probe).color;
  probe.remove();
  return colors[name];
}

const charts = new Set();

// recolor draws all charts in the colors of a new theme.
export function recolor() {
  colors = {};
  for (const c of charts) c.plot?.redraw();
}

// frame creates the card of a chart.
function frame(parent, title) {
  const card = document.createElement("section");
  card.className = "card chart";
  const add = (name, to, text) => {
    const e = document.createElement("div");
    e.className = name;
    e.textContent = text ?? "";
    to.append(e);
    return e;
  };
  const top = add("top", card);
  const heading = document.createElement("h2");
  heading.textContent = title;
  top.append(heading);
  const parts = { card, value: add("value", top), plot: add("plot", card), legend: add("legend", card) };
  parent.append(card);
  return parts;
}

// axes returns the common options of axes. x is time in seconds.
function axes(format) {
  const line = { stroke: () => color("line"), width: 1 };
  const font = "11px system-ui, sans-serif";
  return [
    {
      stroke: () => color("muted"), grid: { show: false }, ticks: { ...line, size: 4 }, font, size: 26, space: 60,
      incrs: [5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute],
      values: (u, splits) => splits.map((t) => clock(t * 1000, u.scales.x.max - u.scales.x.min < 3 * minute)),
    },
    { stroke: () => color("muted"), grid: line, ticks: { show: false }, font, size: 62, gap: 4, space: 28, values: (u, splits) => splits.map((v) => v === null ? "" : format(v)) },
  ];
}

let now = 0;

// endAt sets where the axes of time end.
export function endAt(time) {
  now = time;
}

// span returns the range of time that is shown: until now, and at least a minute.
function span(times) {
  return [Math.min(times[0] ?? now, now - minute), now];
}

class Chart {
  constructor(parent, title, format) {
    this.parts = frame(parent, title);
    this.format = format;
    this.times = [];
    charts.add(this);
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.parts.plot);
  }
  size() {
    return { width: this.parts.plot.clientWidth, height: this.parts.plot.clientHeight };
  }
  options(more) {
    return {
      ...this.size(), axes: axes(this.format), legend: { show: false }, padding: [8, 22, 0, 0],
      ...more,
      scales: { x: { time: false, range: () => span(this.times) }, ...more.scales },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false }, ...more.cursor },
    };
  }
  hint(text) {
    if (this.parts.value.textContent !== text) this.parts.value.textContent = text;
  }
  replace(options, data) {
    this.plot?.destroy();
    this.plot = new uPlot(options, data, this.parts.plot);
  }
}

// Lines has a line per agent. The highlighted ones have a color and a legend.
export class Lines extends Chart {
  constructor(parent, title, format, { log = false, max = null, least = 0 } = {}) {
    super(parent, title, format);
    Object.assign(this, { log, max, least });
  }

  // update draws series: {name, values, color, dash}. A series without a color is in the background.
  update(times, series) {
    this.times = times;
    this.series = series;
    const key = JSON.stringify(series.map((s) => [s.name, s.color, s.dash]));
    const data = [times, ...series.map((s) => s.values)];
    if (this.plot && key === this.key) return this.plot.setData(data);
    this.key = key;
    const faint = series.length > 40 ? 0.5 : 1;
    this.replace(this.options({
      scales: { y: { distr: this.log ? 3 : 1, range: (u, low, high) => this.range(low, high) } },
      series: [{}, ...series.map((s) => ({
        label: s.name, stroke: () => color(s.color ?? "faint"), width: s.color ? 2 : faint, dash: s.dash, spanGaps: false,
        points: { show: times.length < 2, size: 4 }, alpha: s.color ? 1 : 0.65,
      }))],
      focus: { alpha: series.length > 1 ? 0.35 : 1 },
      cursor: { focus: { prox: 20 } },
      hooks: { setSeries: [(u, i) => { this.focused = i; this.point(); }], setCursor: [() => this.point()] },
    }), data);
    this.legend();
    this.point();
  }
  range(low, high) {
    if (this.max) return [0, this.max];
    if (low === null) return this.log ? [1, 10] : [0, 1];
    return this.log ? uPlot.rangeLog(low * 0.8, high * 1.25, 10, false) : [0, Math.max(high * 1.1, this.least) || 1];
  }
  legend() {
    const shown = this.series.filter((s) => s.color);
    const rest = this.series.length - shown.length;
    this.parts.legend.replaceChildren(...shown.map((s) => {
      const b = document.createElement("b");
      b.textContent = (s.dash ? "╌ " : "— ") + s.name;
      b.style.color = `var(--${s.color})`;
      return b;
    }), rest > 0 ? (shown.length ? `and ${rest} other agents` : `${rest} agents`) : "");
  }
  // point shows the value at the cursor, or the newest value of the first series.
  point() {
    const u = this.plot;
    if (!u) return;
    const at = u.cursor.idx, i = this.focused;
    if (at != null && i) return this.hint(`${this.series[i - 1].name}: ${this.format(this.series[i - 1].values[at])} at ${clock(this.times[at] * 1000, true)}`);
    this.hint(this.series.length === 1 ? this.format(this.series[0].values.at(-1) ?? null) : "");
  }
}

// Heat shows a histogram over time: the stronger the color, the larger the share of the transfers
// per height, because buckets differ in height.
export class Heat extends Chart {
  constructor(parent, title, format, base) {
    super(parent, title, format);
    this.base = base;
    this.parts.legend.textContent = "a stronger color is a larger share of the transfers";
  }
  update(times, bounds, columns) {
    this.times = times;
    this.columns = columns.map((c) => {
      const sum = c.reduce((a, b) => a + b, 0);
      return sum ? c.map((n) => n / sum) : null;
    });
    this.bounds = bounds;
    let low = bounds.length, high = 0;
    this.heights = bounds.map((b, i) => Math.log(b / this.floor(i)));
    this.peak = 0;
    for (const c of this.columns) {
      c?.slice(0, bounds.length).forEach((n, i) => {
        if (!n) return;
        low = Math.min(low, i);
        high = Math.max(high, i);
        this.peak = Math.max(this.peak, n / this.heights[i]);
      });
    }
    if (low > high) [low, high] = [0, bounds.length - 1];
    this.y = [this.floor(low), bounds[high]];
    if (this.plot) return this.plot.setData([times, times.map(() => null)]);
    const [x, y] = axes(this.format);
    this.replace(this.options({
      axes: [x, { ...y, grid: { show: false } }],
      scales: { y: { distr: 3, log: this.base, range: () => this.y } },
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { drawClear: [(u) => this.draw(u)], setCursor: [(u) => this.point(u)] },
      cursor: { y: true },
    }), [times, times.map(() => null)]);
  }
  floor(i) {
    return i > 0 ? this.bounds[i - 1] : this.bounds[0] / (this.bounds[1] / this.bounds[0]);
  }
  draw(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = color("accent");
    const x = this.times.map((t) => Math.round(u.valToPos(t, "x", true)));
    const y = [this.floor(0), ...this.bounds].map((v) => Math.round(u.valToPos(v, "y", true)));
    this.columns.forEach((c, n) => {
      const left = n > 0 ? Math.max(x[n - 1], x[n] - (x[n] - x[n - 1])) : x[n] - ((x[1] ?? x[0]) - x[0]);
      c?.forEach((share, i) => {
        if (!share || i >= this.bounds.length) return;
        ctx.globalAlpha = 0.08 + 0.92 * Math.sqrt(share / this.heights[i] / this.peak);
        ctx.fillRect(left, y[i + 1], Math.max(1, x[n] - left), y[i] - y[i + 1]);
      });
    });
    ctx.restore();
  }
  // point shows the bucket at the cursor.
  point(u) {
    const at = u.cursor.idx, c = at == null ? null : this.columns[at];
    if (!c || u.cursor.top < 0) return this.hint("");
    const i = this.bounds.findIndex((b) => b >= u.posToVal(u.cursor.top, "y"));
    if (i < 0) return this.hint("");
    this.hint(`${(100 * c[i]).toFixed(1)}\u2009% at ${this.format(this.floor(i))} to ${this.format(this.bounds[i])}`);
  }
}
