package redisquota_test

import (
	"os"
	"strconv"
)

// fromEnv is a number of the environment, or the other one.
func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
