#include "bench/report/page/style.hpp"

namespace dlock::bench {

namespace {

// Colours of series: after the palette of M. Okabe and K. Ito ("Color Universal Design", 2008), which people with any
// colour vision tell apart; darker or lighter than there where they would not stand out from the background.
constexpr const char* rules = R"(<style>
:root {
  color-scheme: light dark;
  --page: #ffffff; --box: #f4f5f7; --text: #1c2024; --soft: #555d66; --grid: #dfe2e6; --axis: #7b848e;
  --good: #00644a; --bad: #a63b00; --link: #0059a0;
  --s0: #0072b2; --s1: #c24e00; --s2: #00805c; --s3: #b0518a; --s4: #6a5acd; --s5: #7a6a00; --light: #9db8cc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --box: #1e2327; --text: #e8eaed; --soft: #a9b1ba; --grid: #30363c; --axis: #7b848e;
    --good: #4fd0a5; --bad: #ff9a5c; --link: #7cc0f0;
    --s0: #56b4e9; --s1: #e69f00; --s2: #1fbf91; --s3: #e08fbe; --s4: #a79bf0; --s5: #d6c94a; --light: #4d6b80;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  overflow-wrap: break-word;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 0.25rem; }
p { margin: 0.5rem 0; max-width: 48rem; }
a { color: var(--link); }
nav a { display: inline-block; margin-right: 1rem; padding: 0.25rem 0; }
code { overflow-wrap: anywhere; font: 0.875em/1.4 ui-monospace, "Liberation Mono", monospace; }
.repeat code span { display: inline-block; max-width: 100%; }
.soft, .repeat, figcaption { color: var(--soft); }
.repeat { font-size: 0.875rem; }
.note { border-left: 4px solid var(--bad); background: var(--box); padding: 0.5rem 0.75rem; max-width: 48rem; }
.herd { margin: 0.25rem 0; padding-left: 1.25rem; }
.settings { display: grid; grid-template-columns: fit-content(40%) 1fr; gap: 0.25rem 1rem; font-size: 0.875rem; }
.settings dt { color: var(--soft); overflow-wrap: anywhere; }
.settings dd { margin: 0; overflow-wrap: anywhere; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.advice { display: grid; gap: 0.75rem; margin: 1rem 0; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.advice > div { background: var(--box); border-radius: 0.5rem; padding: 0.75rem; }
.advice dt { color: var(--soft); font-size: 0.875rem; }
.advice dd { margin: 0; }
.advice .answer { font-weight: 600; }
.advice .why { font-size: 0.875rem; }
.charts { display: grid; gap: 1rem 1.5rem; margin: 1rem 0; align-items: start; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); }
figure { margin: 0; min-width: 0; max-width: 30rem; }
figure.tall { grid-row: span 2; }
figure h3 { margin: 0; }
figure > svg { display: block; width: 100%; height: auto; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.1rem 1rem; margin: 0.25rem 0 0; padding: 0; font-size: 0.8125rem; }
.legend li { min-width: 0; overflow-wrap: anywhere; display: flex; align-items: center; gap: 0.35rem; }
.legend svg { flex: none; }
svg text { paint-order: stroke; stroke: var(--page); stroke-width: 3px; stroke-linejoin: round; font: 11px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; fill: var(--soft); }
svg .name { font-style: italic; }
svg .label { font-size: 12px; font-weight: 600; fill: var(--text); }
svg .value { fill: var(--text); }
svg .grid { stroke: var(--grid); }
svg .axis { stroke: var(--axis); }
svg .s0 { color: var(--s0); } svg .s1 { color: var(--s1); } svg .s2 { color: var(--s2); } svg .s3 { color: var(--s3); }
svg .s4 { color: var(--s4); } svg .s5 { color: var(--s5); }
svg .line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
svg .dashed { stroke-dasharray: 5 4; stroke-width: 1.5; }
svg .mark { fill: currentColor; stroke: currentColor; stroke-width: 1.5; }
svg .stroke { stroke: currentColor; stroke-width: 2; }
svg .bar { fill: currentColor; }
svg .muted { opacity: 0.6; }
svg .muted.label { opacity: 1; fill: var(--soft); font-weight: 400; }
.scroll { overflow-x: auto; }
.scroll tbody th { position: sticky; left: 0; background: var(--page); }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
td, tbody th { white-space: nowrap; }
.words td { white-space: normal; overflow-wrap: anywhere; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--grid); text-align: right; vertical-align: top; }
.stack th, .stack td { padding: 0.3rem 0.4rem; }
th { font-weight: 600; }
thead th { color: var(--soft); }
th:first-child, td:first-child, .words td, .words th { text-align: left; }
td { background: linear-gradient(var(--light), var(--light)) no-repeat left bottom / calc(var(--bar, 0%) * 0.9) 4px; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--link); padding: 0.25rem 0; }
@media (max-width: 46rem) {
  .stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .stack, .stack tbody, .stack tr, .stack th, .stack td { display: block; }
  .stack tr { background: var(--box); border-radius: 0.5rem; padding: 0.5rem 0.75rem; margin: 0.5rem 0; }
  .stack th, .stack td { border: 0; padding: 0.1rem 0 0.35rem; }
  .stack tbody th { position: static; background: none; }
  .stack th { white-space: normal; overflow-wrap: anywhere; }
  .stack td { white-space: normal; display: flex; justify-content: space-between; gap: 1rem; text-align: right; }
  .stack td span { min-width: 0; overflow-wrap: anywhere; }
  .stack td::before { content: attr(data-label); color: var(--soft); text-align: left; }
}
</style>
)";

}  // namespace

const Markup& page_style() {
  static const Markup style(rules);
  return style;
}

}  // namespace dlock::bench
