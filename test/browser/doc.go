// Package browser tests, in headless Chromium, the pages that chert sends to browsers:
// folder listings, errors, the demo and the live page of package admin; and that it is
// served over HTTPS.
//
// The tests need the program chromium (Debian's package of that name) and skip
// without it; with CHERT_REQUIRE_ALL=1 they fail. With CHERT_SCREENSHOTS=DIR
// they save screenshots of the pages there.
package browser

// It contains tests only, and is a module of its own because they drive Chromium
// with chromedp, which must not become a dependency of chert. The folder lies within
// chert's, so it may import chert's internal packages.
