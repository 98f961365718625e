// Package browser tests in headless Chromium what chert sends to browsers.
//
// It is tests only, and a module of its own because they drive Chromium by
// chromedp: that must not become a dependency of chert. The folder lies within
// chert's, so it may import chert's internal packages.
//
// The tests need the program chromium (Debian's package of that name) and skip
// without it; with CHERT_REQUIRE_ALL=1 they fail. With CHERT_SCREENSHOTS=DIR
// they leave pictures of the pages there.
package browser
