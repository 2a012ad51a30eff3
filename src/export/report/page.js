"use strict";
// Draws the matrix of the page from the numbers in it, and tells every pair in words. Whatever comes from the numbers becomes text
// (textContent) or a colour, never markup.
(function () {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const world = data.ranks, tables = data.tables;
  document.querySelectorAll(".scripted").forEach((part) => { part.hidden = false; });
  $("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(data)], { type: "application/json" }));
    link.download = data.name.replace(/[^\p{L}\p{N}._-]/gu, "-").replace(/^[.-]+/, "") + "-numbers.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  // What is folded is printed, too.
  let folded = [];
  addEventListener("beforeprint", () => { folded = [...document.querySelectorAll("details:not([open])")]; folded.forEach((part) => { part.open = true; }); });
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
  if (!tables.length || !$("plot")) {
    // Without a matrix nothing leads into it.
    document.querySelectorAll(".pairs").forEach((part) => { part.hidden = true; });
    return;
  }

  const METRICS = {
    bandwidth: { name: "bandwidth", map: "sequential" },
    share: { name: "share of what the hardware should give", map: "sequential" },
    time: { name: "time of a message", map: "sequential" },
    asymmetry: { name: "asymmetry, ln(there / back)", map: "diverging" },
    duplex: { name: "duplex ratio, both ways / alone", map: "sequential" },
    spread: { name: "spread, ± % of the median (95 %)", map: "sequential" },
  };
  const states = Object.fromEntries(data.looks.states.map((state) => [state.letter, state]));
  const marked = new Map();
  for (const [finding, from, to] of data.marks) if (!marked.has(from * world + to)) marked.set(from * world + to, finding);
  const member = new Map();
  data.findings.forEach((finding, number) => (finding.cells || []).forEach(([from, to]) => { const at = from * world + to; if (!member.has(at)) member.set(at, number); }));
  const size = (bytes) => {
    for (const [shift, unit] of [[30, "GiB"], [20, "MiB"], [10, "KiB"]]) {
      const amount = bytes / 2 ** shift;
      if (amount >= 1 && (Number.isInteger(amount) || amount >= 10)) return (Number.isInteger(amount) ? amount : amount.toFixed(1)) + " " + unit;
    }
    return bytes + " B";
  };
  const three = (value) => value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value >= 0.1 || value === 0 ? value.toFixed(2) : value.toPrecision(3);
  const time = (us) => us == null ? "–" : us < 1 ? three(us * 1e3) + " ns" : us < 1e3 ? three(us) + " µs" : us < 1e6 ? three(us / 1e3) + " ms" : three(us / 1e6) + " s";
  const table = (pattern, bytes) => tables.find((own) => own.pattern === pattern && own.bytes === bytes);
  const good = (own, at) => own && own.state[at] === "." && own.us[at] > 0;
  const rate = (own, at) => good(own, at) ? own.bytes / own.us[at] * 1e6 : NaN;
  const expected = (at) => { const of = data.expected.of[at]; return of == null ? NaN : data.expected.bytes_per_second[of]; };

  const choice = { metric: "bandwidth", pattern: tables[0].pattern, bytes: data.bytes };
  if (!table(choice.pattern, choice.bytes)) choice.bytes = tables[0].bytes;
  let own = table(choice.pattern, choice.bytes), domain, values, unit, beyond = [false, false];
  let cursor = data.marks.length ? [data.marks[0][1], data.marks[0][2]] : world > 1 ? [0, 1] : [0, 0];
  let sight = { row: 0, column: 0, span: world };
  let visited = 0;

  const number = (at) => {
    const from = Math.floor(at / world), to = at % world;
    switch (choice.metric) {
      case "bandwidth": return rate(own, at);
      case "share": return rate(own, at) / expected(at);
      case "time": return good(own, at) ? own.us[at] / 1e6 : NaN;
      case "asymmetry": return Math.log(rate(own, at) / rate(own, to * world + from));
      case "duplex": return rate(table("duplex", own.bytes), at) / rate(table("peer", own.bytes), at);
      default: return good(own, at) && own.spread[at] != null ? own.spread[at] / 100 : NaN;
    }
  };
  // The worst of a block is what must not be lost where many pairs share a pixel.
  const badness = (value) => choice.metric === "asymmetry" ? Math.abs(value) : choice.metric === "time" || choice.metric === "spread" ? value : -value;
  const position = (value) => {
    const [low, high, scale] = domain;
    if (scale === "symmetric") return (Math.max(-1, Math.min(1, value / high)) + 1) / 2;
    const share = scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.max(0, Math.min(1, share));
  };
  const ramp = () => data.looks[METRICS[choice.metric].map];
  const color = (value) => { const all = ramp(); return all[Math.min(all.length - 1, Math.floor(position(value) * all.length))]; };
  const told = (value) => {
    switch (choice.metric) {
      case "bandwidth": return three(value / unit[1]);
      case "time": return three(value / unit[1]);
      case "asymmetry": return (value > 0 ? "+" : "") + value.toFixed(2);
      case "spread": return three(value * 100);
      default: return value.toFixed(2);
    }
  };
  const printing = () => matchMedia("print").matches;
  const dark = () => !printing() && matchMedia("(prefers-color-scheme: dark)").matches;
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const textOn = (hex) => {
    const [r, g, b] = rgb(hex).map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
  };
  const stateColor = (letter) => states[letter][dark() ? "dark" : "light"];
  const SEVERITY = ["c", "t", "w", "-"];

  function fill(select, entries, chosen) {
    select.replaceChildren(...entries.map(([value, name]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = name;
      option.selected = String(value) === String(chosen);
      return option;
    }));
  }
  function choose() {
    const patterns = [...new Set(tables.map((own) => own.pattern))];
    if (!patterns.includes(choice.pattern)) choice.pattern = patterns[0];
    const sizes = tables.filter((own) => own.pattern === choice.pattern).map((own) => own.bytes);
    if (!sizes.includes(choice.bytes)) choice.bytes = sizes[sizes.length - 1];
    own = table(choice.pattern, choice.bytes);
    const metrics = Object.keys(METRICS).filter((metric) => own.domains[metric]);
    if (!metrics.includes(choice.metric)) choice.metric = metrics[0] || "bandwidth";
    domain = own.domains[choice.metric] || [0, 1, "linear"];
    unit = choice.metric === "time" ? domain[1] < 1e-6 ? ["ns", 1e-9] : domain[1] < 1e-2 ? ["µs", 1e-6] : domain[1] < 10 ? ["ms", 1e-3] : ["s", 1]
      : domain[1] < 1e9 ? ["MB/s", 1e6] : ["GB/s", 1e9];
    values = Float64Array.from({ length: world * world }, (_, at) => number(at));
    // Beyond its ends a colour means that and more.
    beyond = [false, false];
    for (let at = 0; at < values.length; at++) {
      if (Math.floor(at / world) === at % world) continue;
      if (values[at] < domain[0] - Math.abs(domain[0]) * 1e-6) beyond[0] = true;
      if (values[at] > domain[1] + Math.abs(domain[1]) * 1e-6) beyond[1] = true;
    }
    fill($("pattern"), patterns.map((name) => [name, name === "peer" ? "one way, alone" : "both ways at once"]), choice.pattern);
    fill($("size"), sizes.map((bytes) => [bytes, size(bytes)]), choice.bytes);
    fill($("metric"), metrics.map((metric) => [metric, METRICS[metric].name]), choice.metric);
    draw();
    tell();
  }

  const canvas = $("plot");
  let plot = { left: 0, top: 0, side: 1, ratio: 1 };
  function draw() {
    const wide = canvas.clientWidth || 300, ratio = window.devicePixelRatio || 1;
    const left = 10 + 8 * String(world - 1).length, top = 20, side = wide - left - 2;
    plot = { left, top, side, ratio };
    canvas.style.height = side + top + 2 + "px";
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round((side + top + 2) * ratio);
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    const { row, column, span } = sight, each = side / span;
    // At least one pixel of the device for a block of pairs.
    const factor = Math.max(1, Math.ceil(span / (side * ratio))), blocks = Math.ceil(span / factor);
    const small = document.createElement("canvas");
    small.width = small.height = blocks;
    const picture = small.getContext("2d").createImageData(blocks, blocks);
    const ground = rgb(dark() ? "#16181d" : "#ffffff"), table256 = ramp().map(rgb);
    const looks = Object.fromEntries(SEVERITY.map((letter) => [letter, rgb(stateColor(letter))]));
    for (let y = 0; y < blocks; y++) for (let x = 0; x < blocks; x++) {
      let worst = NaN, state = "";
      for (let from = row + y * factor; from < Math.min(world, row + (y + 1) * factor); from++) {
        for (let to = column + x * factor; to < Math.min(world, column + (x + 1) * factor); to++) {
          if (from === to) continue;
          const at = from * world + to, value = values[at];
          if (!Number.isNaN(value)) { if (!(badness(worst) >= badness(value))) worst = value; }
          else {
            const letter = own.state[at] === "." ? "-" : own.state[at];
            if (!state || SEVERITY.indexOf(letter) < SEVERITY.indexOf(state)) state = letter;
          }
        }
      }
      // What failed is worse than what is slow; what was not measured is not.
      const failed = state === "c" || state === "t";
      const paint = !failed && !Number.isNaN(worst) ? table256[Math.min(table256.length - 1, Math.floor(position(worst) * table256.length))] : state ? looks[state] : ground;
      picture.data.set([paint[0], paint[1], paint[2], 255], (y * blocks + x) * 4);
    }
    small.getContext("2d").putImageData(picture, 0, 0);
    c.save();
    c.beginPath();
    c.rect(left, top, side, side);
    c.clip();
    c.imageSmoothingEnabled = false;
    c.drawImage(small, left, top, blocks * factor * each, blocks * factor * each);
    const place = (from, to) => [left + (to - column) * each, top + (from - row) * each];
    if (each >= 14) letters(c, place, each);
    if (each >= 2) rules(c, place, each);
    if ($("marked").checked) {
      for (const at of marked.keys()) {
        const [x, y] = place(Math.floor(at / world), at % world), room = Math.max(each, 5), shift = (room - each) / 2;
        frame(c, x - shift, y - shift, room, each >= 10 ? 2 : 1);
      }
    }
    const [x, y] = place(...cursor), room = Math.max(each, 9), shift = (room - each) / 2;
    c.strokeStyle = dark() ? "#000" : "#fff";
    c.lineWidth = 5;
    c.strokeRect(x - shift, y - shift, room, room);
    c.strokeStyle = style("--accent");
    c.lineWidth = 3;
    c.strokeRect(x - shift, y - shift, room, room);
    c.restore();
    c.fillStyle = style("--quiet");
    c.font = "12px system-ui, sans-serif";
    const step = Math.max(1, 2 ** Math.ceil(Math.log2(22 / each)));
    for (let rank = Math.ceil(row / step) * step; rank < Math.min(world, row + span); rank += step) {
      c.textAlign = "right";
      c.textBaseline = "middle";
      c.fillText(rank, left - 4, top + (rank - row + 0.5) * each);
    }
    for (let rank = Math.ceil(column / step) * step; rank < Math.min(world, column + span); rank += step) {
      c.textAlign = "center";
      c.textBaseline = "bottom";
      c.fillText(rank, left + (rank - column + 0.5) * each, top - 3);
    }
    legend();
  }
  function frame(c, x, y, room, wide) {
    c.lineWidth = wide + 2;
    c.strokeStyle = "#fff";
    c.strokeRect(x + wide, y + wide, room - 2 * wide, room - 2 * wide);
    c.lineWidth = wide;
    c.strokeStyle = "#c00";
    c.strokeRect(x + wide, y + wide, room - 2 * wide, room - 2 * wide);
  }
  function letters(c, place, each) {
    c.textAlign = "center";
    c.textBaseline = "middle";
    const last = (first) => Math.min(world, first + Math.ceil(sight.span));
    for (let from = sight.row; from < last(sight.row); from++) for (let to = sight.column; to < last(sight.column); to++) {
      if (from === to) continue;
      const at = from * world + to, value = values[at], [x, y] = place(from, to);
      const letter = own.state[at] === "." ? "-" : own.state[at];
      const known = !Number.isNaN(value), failed = letter === "c" || letter === "t";
      if (known && !failed && each < 34) continue;
      c.font = (known && !failed ? Math.min(16, each / 3) : Math.min(18, each * 0.8)) + "px system-ui, sans-serif";
      c.fillStyle = textOn(known && !failed ? color(value) : stateColor(letter));
      c.fillText(known && !failed ? told(value) : states[letter].glyph, x + each / 2, y + each / 2);
    }
  }
  // Between hosts.
  function rules(c, place, each) {
    c.strokeStyle = dark() ? "#000" : "#fff";
    c.lineWidth = each > 20 ? 2 : 1;
    for (let rank = 1; rank < world; rank++) {
      if (data.host_of[rank] === data.host_of[rank - 1] || data.hosts.length === world) continue;
      const [x, y] = place(rank, rank), [left, top] = place(sight.row, sight.column);
      c.beginPath();
      c.moveTo(x, top);
      c.lineTo(x, top + sight.span * each);
      c.moveTo(left, y);
      c.lineTo(left + sight.span * each, y);
      c.stroke();
    }
  }
  function legend() {
    // Of one rank no metric has two pairs to tell apart.
    if (!own.domains[choice.metric]) { $("legend").replaceChildren(); return; }
    const strip = $("ramp"), c = strip.getContext("2d"), all = ramp();
    strip.width = all.length;
    strip.height = 1;
    all.forEach((hex, at) => { c.fillStyle = hex; c.fillRect(at, 0, 1, 1); });
    const words = choice.metric === "bandwidth" || choice.metric === "time" ? " " + unit[0] : choice.metric === "spread" ? " %" : "";
    const say = (text, name) => { const part = document.createElement("span"); part.textContent = text; part.className = name; return part; };
    const parts = [say((beyond[0] ? "≤ " : "") + told(domain[0]) + words, "first")];
    for (const letter of ["-", "w", "t", "c"]) {
      if (!own.state.includes(letter) || letter === "-" && !pairsMissing()) continue;
      const part = say("", "state"), swatch = document.createElement("canvas");
      swatch.width = swatch.height = 20;
      const s = swatch.getContext("2d");
      s.fillStyle = stateColor(letter);
      s.fillRect(0, 0, 20, 20);
      s.fillStyle = textOn(stateColor(letter));
      s.textAlign = "center";
      s.textBaseline = "middle";
      s.font = "16px system-ui, sans-serif";
      s.fillText(states[letter].glyph, 10, 10);
      part.append(swatch, states[letter].name);
      parts.push(part);
    }
    parts.push(say((beyond[1] ? "≥ " : "") + told(domain[1]) + words, "last"));
    $("legend").replaceChildren(...parts);
  }
  const pairsMissing = () => { for (let at = 0; at < values.length; at++) if (own.state[at] === "-" && Math.floor(at / world) !== at % world) return true; return false; };

  const host = (rank) => data.hosts[data.host_of[rank]];
  function tell(shown = cursor) {
    const [from, to] = shown, at = from * world + to, back = to * world + from;
    const parts = [];
    const gbps = (value) => value < 1e9 && unit[0] === "MB/s" ? three(value / 1e6) + " MB/s" : three(value / 1e9) + " GB/s";
    const what = own.state[at] === "." ? gbps(rate(own, at)) + " (" + time(own.us[at]) + " a message)" : states[own.state[at]].name;
    parts.push("rank " + from + " (" + host(from) + ") → rank " + to + " (" + host(to) + "): " + what);
    const repeats = own.n[at] + (own.n[at] === 1 ? " repeat" : " repeats");
    if (own.spread[at] != null && good(own, at)) parts.push("± " + own.spread[at].toFixed(1) + " % over " + repeats);
    else if (good(own, at)) parts.push(repeats);
    if (from !== to) {
      if (good(own, back)) parts.push("back " + gbps(rate(own, back)));
      const both = table("duplex", own.bytes), alone = table("peer", own.bytes);
      if (good(both, at) && good(alone, at)) parts.push("both ways at once " + gbps(rate(both, at)) + ", " + (rate(both, at) / rate(alone, at)).toFixed(2) + " of that alone");
      if (!Number.isNaN(expected(at)) && good(own, at)) parts.push((rate(own, at) / expected(at) * 100).toFixed(0) + " % of the " + gbps(expected(at)) + " that the hardware should give");
      const kind = data.class_of[at];
      if (kind != null && data.classes[kind]) parts.push("path " + data.classes[kind]);
    } else parts.push("its own copies");
    const finding = marked.get(at) ?? member.get(at);
    if (finding != null) parts.push("part of finding " + (finding + 1) + ": " + data.findings[finding].title);
    $("cell").textContent = size(own.bytes) + ", " + parts.join(" · ");
    if (shown === cursor) pair(from, to);
  }
  function pair(from, to) {
    const at = from * world + to, back = to * world + from;
    const rows = [["size", "pattern", "time", "GB/s", "±", "repeats", "back, GB/s"]];
    const all = tables.filter((own) => own.n[at] || own.state[at] !== "-");
    for (const own of all) {
      const value = rate(own, at), other = rate(own, back);
      rows.push([size(own.bytes), from === to ? "local" : own.pattern, own.state[at] === "." ? time(own.us[at]) : states[own.state[at]].name,
        Number.isNaN(value) ? "–" : three(value / 1e9), own.spread[at] == null ? "–" : own.spread[at].toFixed(1) + " %", String(own.n[at]),
        from === to || Number.isNaN(other) ? "–" : three(other / 1e9)]);
    }
    const made = document.createElement("table"), body = document.createElement("tbody"), head = document.createElement("thead");
    rows.forEach((row, number) => {
      const line = document.createElement("tr");
      for (const text of row) { const cell = document.createElement(number ? "td" : "th"); cell.textContent = text; line.append(cell); }
      (number ? body : head).append(line);
    });
    made.append(head, body);
    $("pair").replaceChildren(made);
    curve(at, back);
  }
  // Bandwidth over size: there (line), and back (dashed).
  function curve(at, back) {
    const NS = "http://www.w3.org/2000/svg", W = 420, H = 170;
    const make = (name, attributes, text) => {
      const part = document.createElementNS(NS, name);
      for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
      if (text != null) part.textContent = text;
      return part;
    };
    const points = (at) => tables.filter((own) => own.pattern === choice.pattern && good(own, at)).map((own) => [own.bytes, rate(own, at)]).sort((a, b) => a[0] - b[0]);
    const there = points(at), other = at === back ? [] : points(back), all = there.concat(other);
    if (there.length < 2) { $("curve").replaceChildren(); return; }
    const sizes = all.map((point) => Math.log(point[0])), low = Math.min(...sizes), high = Math.max(...sizes), most = Math.max(...all.map((point) => point[1])) * 1.08;
    const x = (bytes) => 50 + (Math.log(bytes) - low) / (high - low || 1) * (W - 70), y = (value) => H - 24 - value / most * (H - 38);
    const svg = make("svg", { viewBox: "0 0 " + W + " " + H, class: "curve", role: "img" });
    svg.append(make("title", {}, "bandwidth over message size; back is dashed"));
    const top = most / 1.08, scale = top < 1e9 ? ["MB/s", 1e6] : ["GB/s", 1e9];
    svg.append(make("path", { class: "rule", d: "M50 " + y(0) + "H" + (W - 20) }), make("path", { class: "rule", d: "M50 " + y(top) + "H" + (W - 20) }));
    svg.append(make("text", { x: 44, y: y(top) + 4, "text-anchor": "end" }, three(top / scale[1])), make("text", { x: 44, y: y(top) + 17, "text-anchor": "end" }, scale[0]), make("text", { x: 44, y: y(0) + 4, "text-anchor": "end" }, "0"));
    const step = Math.ceil(there.length / 5);
    there.forEach(([bytes], number) => {
      if ((there.length - 1 - number) % step === 0) svg.append(make("text", { x: x(bytes), y: H - 6, "text-anchor": number === there.length - 1 ? "end" : "middle" }, size(bytes)));
    });
    const line = (all) => all.map(([bytes, value]) => x(bytes).toFixed(1) + "," + y(value).toFixed(1)).join(" ");
    if (other.length > 1) svg.append(make("polyline", { class: "line back", points: line(other) }));
    svg.append(make("polyline", { class: "line", points: line(there) }));
    for (const [bytes, value] of there) svg.append(make("circle", { class: "dot", cx: x(bytes), cy: y(value), r: 3 }));
    $("curve").replaceChildren(svg);
  }

  const within = (value, least, most) => Math.max(least, Math.min(most, value));
  function show() {
    sight.span = within(sight.span, Math.min(4, world), world);
    for (const [key, at] of [["row", cursor[0]], ["column", cursor[1]]]) {
      if (at < sight[key] || at >= sight[key] + sight.span) sight[key] = at - Math.floor(sight.span / 2);
      sight[key] = within(Math.round(sight[key]), 0, world - sight.span);
    }
    draw();
    tell();
  }
  function zoom(factor) {
    sight.span = factor === 0 ? world : Math.round(within(sight.span * factor, Math.min(4, world), world));
    sight.row = cursor[0] - Math.floor(sight.span / 2);
    sight.column = cursor[1] - Math.floor(sight.span / 2);
    show();
  }
  function next() {
    if (!data.marks.length) return;
    visited = (visited + 1) % data.marks.length;
    cursor = [data.marks[visited][1], data.marks[visited][2]];
    show();
  }
  const under = (event) => {
    const box = canvas.getBoundingClientRect(), each = plot.side / sight.span;
    const to = Math.floor((event.clientX - box.left - plot.left) / each) + sight.column, from = Math.floor((event.clientY - box.top - plot.top) / each) + sight.row;
    const inside = event.clientX - box.left >= plot.left && event.clientY - box.top >= plot.top;
    return inside && from >= 0 && to >= 0 && from < Math.min(world, sight.row + sight.span) && to < Math.min(world, sight.column + sight.span) ? [from, to] : null;
  };
  canvas.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") tell(under(event) || cursor); });
  canvas.addEventListener("pointerleave", () => tell());
  canvas.addEventListener("click", (event) => { const cell = under(event); if (cell) { cursor = cell; show(); } });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 8 : 1, move = { ArrowUp: [-step, 0], ArrowDown: [step, 0], ArrowLeft: [0, -step], ArrowRight: [0, step] }[event.key];
    if (move) cursor = [within(cursor[0] + move[0], 0, world - 1), within(cursor[1] + move[1], 0, world - 1)];
    else if (event.key === "Home") cursor = [0, 0];
    else if (event.key === "End") cursor = [world - 1, world - 1];
    else if (event.key === "+" || event.key === "=") return zoom(0.5);
    else if (event.key === "-") return zoom(2);
    else if (event.key === "0") return zoom(0);
    else if (event.key === "n") return next();
    else return;
    event.preventDefault();
    show();
  });
  $("closer").addEventListener("click", () => zoom(0.5));
  $("wider").addEventListener("click", () => zoom(2));
  $("all").addEventListener("click", () => zoom(0));
  $("marked").addEventListener("change", draw);
  $("metric").addEventListener("change", (event) => { choice.metric = event.target.value; choose(); });
  $("pattern").addEventListener("change", (event) => { choice.pattern = event.target.value; choose(); });
  $("size").addEventListener("change", (event) => { choice.bytes = Number(event.target.value); choose(); });
  document.querySelectorAll("button[data-from]").forEach((button) => button.addEventListener("click", () => {
    cursor = [Number(button.dataset.from), Number(button.dataset.to)];
    show();
    $("matrix").scrollIntoView();
    canvas.focus({ preventScroll: true });
  }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  matchMedia("print").addEventListener("change", draw);
  let due = 0, before = 0;
  new ResizeObserver(() => {
    if (canvas.clientWidth === before) return;
    before = canvas.clientWidth;
    cancelAnimationFrame(due);
    due = requestAnimationFrame(draw);
  }).observe(canvas);
  choose();
})();
