// Package web holds the two pages that a server shows to people: the dashboard
// and the playground, embedded as they were built from app/ by npm.
//
// The pages come whole from here and speak only to the server they came from:
// /api/page, /api/instances and /graphql. The package knows nothing of these; it
// serves files, with the headers that keep the pages to that.
//
// dist/ is committed, with the licences of what is bundled (licenses.md), so
// that Go alone builds everything; npm run build in app/ makes it anew, the same
// from the same sources. The playground is GraphiQL 5: its editor, Monaco, makes
// it 6.6 MB, 1.9 MB as sent, of which a browser loads what it uses, once.
package web
