/** How <live-chart> looks in Plotly's terms: panels, axes, marks, colours of the present theme. */
import { alpha, colour, rem } from "core/theme";

const LARGE_REM = 10;
const SMALL_REM = 8;
const TITLE_REM = 1.75;
const GAP_REM = 2.25;
const SMALL_LEAST_REM = 11;

/** Rows of panels: each large one alone, small ones side by side as the width allows. */
function rowsOf(panels, width) {
  const size = rem();
  const abreast = Math.max(1, Math.min(3, Math.floor(width / (SMALL_LEAST_REM * size))));
  const rows = [];
  for (const panel of panels) {
    const last = rows.at(-1);
    const joins = panel.size === "small" && last?.small && last.panels.length < abreast;
    if (joins) last.panels.push(panel);
    else rows.push({ small: panel.size === "small", panels: [panel] });
  }
  return rows;
}

const heightOf = (row) => (row.small ? SMALL_REM : LARGE_REM);

/** The figure's height in pixels. */
function heightOfRows(rows) {
  const body = rows.reduce((sum, row) => sum + heightOf(row) + TITLE_REM, 0);
  return Math.round((body + GAP_REM * rows.length) * rem());
}

/** Panel key → its axes' numbers and its place in fractions of the figure. */
function places(rows, width) {
  const size = rem();
  const total = heightOfRows(rows) / size;
  const side = (3.25 * size) / width;
  const found = new Map();
  let top = 0;
  let n = 1;
  for (const row of rows) {
    const y = [1 - (top + TITLE_REM + heightOf(row)) / total, 1 - (top + TITLE_REM) / total];
    row.panels.forEach((panel, i) => {
      const each = 1 / row.panels.length;
      const x = [i * each + side, (i + 1) * each - (0.5 * size) / width];
      found.set(panel.key, { panel, n, x, y });
      n += 1;
    });
    top += TITLE_REM + heightOf(row) + GAP_REM;
  }
  return found;
}

const axisName = (letter, n) => `${letter}axis${n === 1 ? "" : n}`;
const axisRef = (letter, n) => `${letter}${n === 1 ? "" : n}`;

export function buildLayout({ panels, width, references, marks, gaps, xTitle, range }) {
  const rows = rowsOf(panels, width);
  const at = places(rows, width);
  const size = rem();
  const font = { family: getComputedStyle(document.body).fontFamily, size: 0.75 * size };
  const layout = {
    autosize: false,
    width,
    height: heightOfRows(rows),
    margin: { l: 0, r: 0, t: 0, b: 0 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...font, color: colour("--ink-2") },
    showlegend: false,
    hovermode: "x unified",
    hoverlabel: {
      bgcolor: colour("--surface"),
      bordercolor: colour("--line-2"),
      font: { ...font, color: colour("--ink") },
    },
    dragmode: false,
    shapes: [],
    annotations: [],
    uirevision: "kept",
  };
  for (const place of at.values()) addPanel(layout, place, { size, xTitle, range });
  for (const reference of references) addReference(layout, at.get(reference.panel), reference, size);
  for (const gap of gaps) addGap(layout, at.get(gap.panel), gap, size);
  for (const mark of rowsOfLabels(marks, { at, width, size, end: range[1] })) addMark(layout, at, mark, size);
  return { layout, at };
}

function addPanel(layout, { panel, n, x, y }, { size, xTitle, range }) {
  const axis = {
    zeroline: false,
    linecolor: colour("--line-2"),
    tickcolor: colour("--line-2"),
    gridcolor: colour("--line"),
    fixedrange: true,
    automargin: false,
  };
  layout[axisName("x", n)] = {
    ...axis,
    domain: x,
    anchor: axisRef("y", n),
    range,
    showgrid: false,
    showline: true,
    nticks: panel.size === "small" ? 4 : 8,
    showspikes: true,
    spikemode: "across",
    spikethickness: 1,
    spikedash: "solid",
    spikecolor: colour("--line-2"),
    hoverformat: ",d",
    unifiedhovertitle: { text: `${xTitle} %{x:,d}` },
  };
  layout[axisName("y", n)] = {
    ...axis,
    domain: y,
    anchor: axisRef("x", n),
    type: panel.scale === "log" ? "log" : "linear",
    rangemode: panel.zero ? "tozero" : "normal",
    nticks: panel.size === "small" ? 4 : 7,
    exponentformat: panel.scale === "log" ? "e" : "SI",
    hoverformat: ".4~g",
  };
  layout.annotations.push({
    text: escapeText(panel.label),
    xref: "paper",
    yref: "paper",
    x: x[0],
    y: y[1],
    xanchor: "left",
    yanchor: "bottom",
    yshift: 0.375 * size,
    showarrow: false,
    font: { color: colour("--ink-2"), size: 0.8125 * size },
  });
}

function addReference(layout, place, { value, label }, size) {
  if (!place) return;
  const y = place.panel.scale === "log" ? Math.log10(value) : value;
  layout.shapes.push({
    type: "line",
    layer: "below",
    xref: `${axisRef("x", place.n)} domain`,
    yref: axisRef("y", place.n),
    x0: 0,
    x1: 1,
    y0: value,
    y1: value,
    line: { color: colour("--residual"), width: 1, dash: "dot" },
  });
  layout.annotations.push({
    text: escapeText(label),
    xref: `${axisRef("x", place.n)} domain`,
    yref: axisRef("y", place.n),
    x: 1,
    y,
    xanchor: "right",
    yanchor: "bottom",
    showarrow: false,
    font: { color: colour("--residual"), size: 0.75 * size },
  });
}

/** Steps whose value is NaN or infinite: no line, a tinted band that says so. */
function addGap(layout, place, { from, to, label }, size) {
  if (!place) return;
  layout.shapes.push({
    type: "rect",
    layer: "below",
    xref: axisRef("x", place.n),
    yref: `${axisRef("y", place.n)} domain`,
    x0: from - 0.5,
    x1: to + 0.5,
    y0: 0,
    y1: 1,
    line: { width: 0 },
    fillcolor: alpha("--error", 0.14),
  });
  layout.annotations.push({
    text: escapeText(label),
    xref: axisRef("x", place.n),
    yref: `${axisRef("y", place.n)} domain`,
    x: (from + to) / 2,
    y: 0.5,
    textangle: -90,
    showarrow: false,
    font: { color: colour("--error"), size: 0.75 * size },
  });
}

/** Marks with the row of their label: a label that would cover another stands under it. */
function rowsOfLabels(marks, { at, width, size, end }) {
  const [first] = at.values();
  if (!first) return [];
  const scale = (width * (first.x[1] - first.x[0])) / end;
  const edges = []; // where each row's last label ends, in pixels
  return [...marks].sort((a, b) => a.step - b.step).map((mark) => {
    const left = mark.step * scale;
    const free = edges.findIndex((edge) => edge <= left);
    const row = free < 0 ? edges.length : free;
    edges[row] = left + (0.5 * mark.label.length + 0.5) * size;
    return { ...mark, row };
  });
}

/** A moment of the run (a new attempt, a changed learning rate) through every panel. */
function addMark(layout, at, { step, label, row }, size) {
  let first = true;
  for (const { n } of at.values()) {
    layout.shapes.push({
      type: "line",
      xref: axisRef("x", n),
      yref: `${axisRef("y", n)} domain`,
      x0: step,
      x1: step,
      y0: 0,
      y1: 1,
      line: { color: colour("--index-key"), width: 1, dash: "dash" },
    });
    if (first && label) {
      layout.annotations.push({
        text: escapeText(label),
        xref: axisRef("x", n),
        yref: `${axisRef("y", n)} domain`,
        x: step,
        y: 1,
        xanchor: "left",
        yanchor: "top",
        xshift: 0.25 * size,
        yshift: -row * size,
        showarrow: false,
        font: { color: colour("--index-key"), size: 0.75 * size },
      });
    }
    first = false;
  }
}

/** One trace of Plotly for a series. */
export function buildTrace(series, { x, y }, place) {
  const role = colour(series.role ?? "--accent");
  const points = series.mode === "points";
  return {
    type: "scatter",
    mode: points ? "lines+markers" : "lines",
    name: escapeText(series.label),
    x,
    y,
    xaxis: axisRef("x", place.n),
    yaxis: axisRef("y", place.n),
    connectgaps: points,
    cliponaxis: !points,
    line: { color: role, width: points ? 1 : 1.75, dash: series.dash ?? "solid" },
    marker: { color: role, size: 6, symbol: series.symbol ?? "diamond" },
    hovertemplate: `%{y:.4~g}${series.unit ? ` ${escapeText(series.unit)}` : ""}`,
  };
}

// Plotly reads a small HTML out of its texts.
const escapeText = (text) =>
  String(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
