package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Parameters of storage classes and snapshot classes. A snapshot has those of its volume, too.
const (
	// Seconds that an operation takes longer.
	parameterDelay = "delaySeconds"
	// Number N: of the calls with the same parameters, each Nth fails.
	parameterFailEvery = "failEvery"
	// Number N: of the calls for one object, the first N fail.
	parameterFailFirst = "failFirst"
	// Name of the code of failures, such as OUT_OF_RANGE.
	parameterFailCode = "failCode"
	// The operations that are delayed and fail, separated by commas.
	parameterFaultOperations = "faultOperations"
	// "true": a snapshot has the data of the time of the volume's previous snapshot.
	parameterStaleSnapshots = "staleSnapshots"
	// "true": a clone is a link to its volume, so that both change together.
	parameterLinkedClones = "linkedClones"
	// "true": volumes can be attached to several nodes.
	parameterShared = "shared"
	// Size of the pool of the class in GiB.
	parameterPool = "poolGiB"
)

// Operations, as parameterFaultOperations names them.
const (
	operationCreate         = "create"
	operationRestore        = "restore"
	operationClone          = "clone"
	operationDelete         = "delete"
	operationSnapshot       = "snapshot"
	operationDeleteSnapshot = "delete-snapshot"
	operationAttach         = "attach"
	operationDetach         = "detach"
	operationExpand         = "expand"
	operationStage          = "stage"
)

var operations = []string{
	operationCreate, operationRestore, operationClone, operationDelete, operationSnapshot,
	operationDeleteSnapshot, operationAttach, operationDetach, operationExpand, operationStage,
}

// Operations with faults if a class names none.
const defaultFaultOperations = "create,restore,clone,snapshot"

var (
	callsLock sync.Mutex
	// Calls so far, by operation and parameters, and by operation and object.
	calls = map[string]int{}
)

func merged(volume, snapshot map[string]string) map[string]string {
	all := maps.Clone(volume)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, snapshot)
	return all
}

// checkParameters refuses parameters with a typing error, which would do nothing.
func checkParameters(parameters map[string]string) error {
	wrong := func(name string) error {
		return status.Errorf(codes.InvalidArgument, "parameter %s: %q", name, parameters[name])
	}
	for name, value := range parameters {
		switch name {
		case parameterDelay:
			if seconds, err := strconv.ParseFloat(value, 64); err != nil || seconds < 0 {
				return wrong(name)
			}
		case parameterFailEvery, parameterFailFirst, parameterPool:
			if number, err := strconv.Atoi(value); err != nil || number < 1 {
				return wrong(name)
			}
		case parameterFailCode:
			var code codes.Code
			if code.UnmarshalJSON([]byte(strconv.Quote(value))) != nil {
				return wrong(name)
			}
		case parameterFaultOperations:
			for _, operation := range strings.Split(value, ",") {
				if !slices.Contains(operations, operation) {
					return wrong(name)
				}
			}
		case parameterStaleSnapshots, parameterLinkedClones, parameterShared:
			if value != "true" && value != "false" {
				return wrong(name)
			}
		default:
			return status.Errorf(codes.InvalidArgument, "unknown parameter %s", name)
		}
	}
	return nil
}

// injectFault delays an operation on an object, and fails, as its parameters say.
func injectFault(
	ctx context.Context, operation, object string, parameters map[string]string,
) error {
	affected := parameters[parameterFaultOperations]
	if affected == "" {
		affected = defaultFaultOperations
	}
	if !slices.Contains(strings.Split(affected, ","), operation) {
		return nil
	}
	if seconds, _ := strconv.ParseFloat(parameters[parameterDelay], 64); seconds > 0 {
		select {
		case <-time.After(time.Duration(seconds * float64(time.Second))):
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	fault := dueFault(operation, object, parameters)
	if fault == "" {
		return nil
	}
	code := codes.Internal
	if name := parameters[parameterFailCode]; name != "" {
		if err := code.UnmarshalJSON([]byte(strconv.Quote(name))); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
	return status.Errorf(code, "%s fails on request of the class (%s)", operation, fault)
}

// dueFault counts a call and returns the parameter with which it fails, or "".
func dueFault(operation, object string, parameters map[string]string) string {
	every, _ := strconv.Atoi(parameters[parameterFailEvery])
	first, _ := strconv.Atoi(parameters[parameterFailFirst])
	callsLock.Lock()
	defer callsLock.Unlock()
	count := func(key string) int {
		calls[key]++
		return calls[key]
	}
	switch {
	case first > 0 && count(operation+" of "+object) <= first:
		return fmt.Sprintf("%s=%d", parameterFailFirst, first)
	case every > 0 && count(operation+fmt.Sprint(parameters))%every == 0:
		return fmt.Sprintf("%s=%d", parameterFailEvery, every)
	}
	return ""
}

// poolBytes returns the size of the pool of a class, 0 without a limit.
func poolBytes(parameters map[string]string) int64 {
	gib, _ := strconv.ParseInt(parameters[parameterPool], 10, 64)
	return gib << 30
}
