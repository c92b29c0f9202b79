// Package auth tells who asks and what they may do.
//
// A Verifier turns a bearer token into a Principal: a JSON Web Token signed by
// one of the configured keys, or a machine token whose hash is in a file. A
// Principal travels in the context, and Allow is the one check of a scope that
// everything above the stores makes before it reads.
//
// The package speaks no HTTP and logs no tokens. Every refusal is
// ErrUnauthenticated or ErrForbidden and says nothing more to the caller; Cause
// tells the log.
//
//	principal.go  Principal, its place in a context, Allow
//	config.go     Config, Key, New
//	verify.go     Verifier: what makes a JWT good
//	keys.go       keys, their algorithms, and the files they come in
//	jwk.go        JSON Web Keys (RFC 7517)
//	claims.go     claims by path, scopes in the shapes providers send
//	machine.go    the file of hashed machine tokens
//	sign.go       signing, for those who have no identity provider
package auth
