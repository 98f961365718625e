(() => {
const all = (s) => [...document.querySelectorAll(s)], two = (n) => String(n).padStart(2, "0");
const home = document.querySelector("nav bdi"), filter = document.querySelector("input"), count = document.querySelector("output");
home.textContent = location.host;
if (all("nav li").length == 1) document.title = location.host;
for (const t of all("time")) {
	const d = new Date(t.dateTime);
	t.title = t.dateTime;
	t.textContent = String(d.getFullYear()).padStart(4, "0") + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()) + " " + two(d.getHours()) + ":" + two(d.getMinutes());
}
document.querySelector("thead th:last-child a").textContent = "Modified";
const plain = (s) => s.normalize().toLowerCase();
const rows = all("tbody bdi").map((b) => [b.closest("tr"), plain(b.textContent)]);
const show = () => {
	const words = plain(filter.value).split(" ").filter(Boolean);
	let n = 0;
	for (const [row, name] of rows) {
		row.hidden = !words.every((w) => name.includes(w));
		n += !row.hidden;
	}
	count.textContent = words.length ? n + " shown" : "";
};
filter.hidden = rows.length == 0;
filter.oninput = show;
filter.onkeydown = (e) => {
	if (e.key != "Escape") return;
	filter.value = "";
	show();
};
})();
