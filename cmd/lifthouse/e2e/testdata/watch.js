window.seen = {};
new MutationObserver(() => requestAnimationFrame(() => {
	const there = {table: document.querySelector("[aria-labelledby=variations] tbody tr"), curves: document.querySelectorAll(".uplot").length === 1};
	for (const name in there) if (there[name]) window.seen[name] ??= performance.now();
})).observe(document, {childList: true, subtree: true});
window.moved = {total: 0, what: []};
new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) {
	window.moved.total += e.value;
	window.moved.what.push(e.value.toFixed(4) + " " + e.sources.map((s) => s.node?.className || s.node?.nodeName).join(","));
} }).observe({type: "layout-shift", buffered: true});
