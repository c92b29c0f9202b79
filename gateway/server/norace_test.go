//go:build !race

package server

// raceDetector: times mean little.
const raceDetector = false
