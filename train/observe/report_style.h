// The style of report.html: light and dark as the reader's system has it, one column on a phone.
#pragma once

namespace sdtune::train {

inline constexpr const char* kReportStyle =
    ":root{color-scheme:light dark;--ink:#1d1d22;--soft:#62626d;--paper:#fff;--card:#f5f5f8;--line:#d9d9e0;"
    "--curve:#2563a8;--warn:#fff3d6}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e6ea;--soft:#a2a2ad;--paper:#17171b;--card:#222228;"
    "--line:#3a3a43;--curve:#7db4ee;--warn:#3d3213}}"
    "*{box-sizing:border-box}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:68rem;margin:0 auto;padding:1rem;color:var(--ink);"
    "background:var(--paper);overflow-wrap:anywhere}"
    "h1{font-size:1.7rem;margin:.5rem 0 0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem;padding-top:.6rem;"
    "border-top:1px solid var(--line)}h3{font-size:1rem;margin:1.2rem 0 .4rem}"
    "p{margin:.3rem 0}small,.soft,figcaption{color:var(--soft)}figcaption,small{font-size:.85rem}figure{margin:0}"
    "img{max-width:100%;height:auto}"
    ".photos{display:grid;grid-template-columns:repeat(auto-fill,minmax(7rem,1fr));gap:.5rem}"
    ".photos img{width:100%;aspect-ratio:1;object-fit:cover;border-radius:.4rem;background:var(--card)}"
    ".pairs{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.8rem;max-width:56rem}"
    ".pairs figure{background:var(--card);border-radius:.5rem;padding:.5rem}"
    ".pairs img,.seen img{display:block;width:100%;border-radius:.3rem;margin-bottom:.2rem}"
    "img.small{image-rendering:pixelated}"
    ".strip{display:grid;grid-template-columns:repeat(auto-fill,minmax(7rem,1fr));gap:.8rem;margin-bottom:1rem}"
    ".seen{background:var(--card);border-radius:.5rem;padding:.5rem}"
    ".curves{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:1rem}"
    ".curve{background:var(--card);border-radius:.5rem;padding:.6rem}.curve figcaption{color:var(--ink)}"
    "svg{display:block;width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}"
    ".grid{stroke:var(--line);stroke-width:1}polyline{stroke:var(--curve);stroke-linejoin:round}"
    "circle{fill:var(--curve)}.thin{stroke-opacity:.35;stroke-width:1}.bold{stroke-width:2}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.95rem}"
    "th,td{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}th{font-weight:600}"
    "td:first-child{color:var(--soft)}tr+tr td{border-top:1px solid var(--line)}"
    ".warnings{background:var(--warn);border-radius:.5rem;padding:.6rem 1rem .6rem 2rem}"
    "pre{overflow:auto;background:var(--card);padding:1rem;border-radius:.5rem;font-size:.85rem}";

}  // namespace sdtune::train
