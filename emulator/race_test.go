//go:build race

package emulator_test

const raceDetector = true
