(() => {
	const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest("svg, .hidden");
	const texts = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_TEXT), found = {};
	let first = "";
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (shown(e) && e.getBoundingClientRect().top < innerHeight) first += texts.currentNode.data + "\n";
	}
	for (const [fact] of first.matchAll(/[+-][\d.,∞]+(\s%)? to [+-][\d.,∞]+(\s%)?|[+-][\d.,]+\s%/g)) found[fact] = (found[fact] ?? 0) + 1;
	return {
		Height: document.documentElement.scrollHeight,
		Marks: [...document.querySelectorAll("button.help")].filter(shown).length,
		Headings: [...document.querySelectorAll("h1")].filter(shown).length,
		Facts: Object.keys(found).length,
		Repeated: Object.keys(found).filter((fact) => found[fact] > 1),
	};
})()
