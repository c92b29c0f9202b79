package broker

// description is what is known of an error code.
type description struct {
	name      string
	retriable bool
}

// describe answers from Kafka's list of codes. Retriable are Kafka's own
// retriable codes, and 51 and 89, which clear by themselves. 22, 25, 27, 79 and
// 82 are not: they ask for another request, not for the same one again.
func describe(e Error) (description, bool) {
	i := int(e) + 1
	if i < 0 || i >= len(codeTable) || codeTable[i].name == "" {
		return description{}, false
	}
	return codeTable[i], true
}

// codeTable lists the codes from -1 on. It is never written.
var codeTable = [...]description{
	0:   {"UNKNOWN_SERVER_ERROR", false},                  // -1
	1:   {"NONE", false},                                  // 0
	2:   {"OFFSET_OUT_OF_RANGE", false},                   // 1
	3:   {"CORRUPT_MESSAGE", true},                        // 2
	4:   {"UNKNOWN_TOPIC_OR_PARTITION", true},             // 3
	5:   {"INVALID_FETCH_SIZE", false},                    // 4
	6:   {"LEADER_NOT_AVAILABLE", true},                   // 5
	7:   {"NOT_LEADER_OR_FOLLOWER", true},                 // 6
	8:   {"REQUEST_TIMED_OUT", true},                      // 7
	9:   {"BROKER_NOT_AVAILABLE", true},                   // 8
	10:  {"REPLICA_NOT_AVAILABLE", true},                  // 9
	11:  {"MESSAGE_TOO_LARGE", false},                     // 10
	12:  {"STALE_CONTROLLER_EPOCH", true},                 // 11
	13:  {"OFFSET_METADATA_TOO_LARGE", false},             // 12
	14:  {"NETWORK_EXCEPTION", true},                      // 13
	15:  {"COORDINATOR_LOAD_IN_PROGRESS", true},           // 14
	16:  {"COORDINATOR_NOT_AVAILABLE", true},              // 15
	17:  {"NOT_COORDINATOR", true},                        // 16
	18:  {"INVALID_TOPIC_EXCEPTION", false},               // 17
	19:  {"RECORD_LIST_TOO_LARGE", false},                 // 18
	20:  {"NOT_ENOUGH_REPLICAS", true},                    // 19
	21:  {"NOT_ENOUGH_REPLICAS_AFTER_APPEND", true},       // 20
	22:  {"INVALID_REQUIRED_ACKS", false},                 // 21
	23:  {"ILLEGAL_GENERATION", false},                    // 22
	24:  {"INCONSISTENT_GROUP_PROTOCOL", false},           // 23
	25:  {"INVALID_GROUP_ID", false},                      // 24
	26:  {"UNKNOWN_MEMBER_ID", false},                     // 25
	27:  {"INVALID_SESSION_TIMEOUT", false},               // 26
	28:  {"REBALANCE_IN_PROGRESS", false},                 // 27
	29:  {"INVALID_COMMIT_OFFSET_SIZE", false},            // 28
	30:  {"TOPIC_AUTHORIZATION_FAILED", false},            // 29
	31:  {"GROUP_AUTHORIZATION_FAILED", false},            // 30
	32:  {"CLUSTER_AUTHORIZATION_FAILED", false},          // 31
	33:  {"INVALID_TIMESTAMP", false},                     // 32
	34:  {"UNSUPPORTED_SASL_MECHANISM", false},            // 33
	35:  {"ILLEGAL_SASL_STATE", false},                    // 34
	36:  {"UNSUPPORTED_VERSION", false},                   // 35
	37:  {"TOPIC_ALREADY_EXISTS", false},                  // 36
	38:  {"INVALID_PARTITIONS", false},                    // 37
	39:  {"INVALID_REPLICATION_FACTOR", false},            // 38
	40:  {"INVALID_REPLICA_ASSIGNMENT", false},            // 39
	41:  {"INVALID_CONFIG", false},                        // 40
	42:  {"NOT_CONTROLLER", true},                         // 41
	43:  {"INVALID_REQUEST", false},                       // 42
	44:  {"UNSUPPORTED_FOR_MESSAGE_FORMAT", false},        // 43
	45:  {"POLICY_VIOLATION", false},                      // 44
	46:  {"OUT_OF_ORDER_SEQUENCE_NUMBER", false},          // 45
	47:  {"DUPLICATE_SEQUENCE_NUMBER", false},             // 46
	48:  {"INVALID_PRODUCER_EPOCH", false},                // 47
	49:  {"INVALID_TXN_STATE", false},                     // 48
	50:  {"INVALID_PRODUCER_ID_MAPPING", false},           // 49
	51:  {"INVALID_TRANSACTION_TIMEOUT", false},           // 50
	52:  {"CONCURRENT_TRANSACTIONS", true},                // 51
	53:  {"TRANSACTION_COORDINATOR_FENCED", false},        // 52
	54:  {"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false}, // 53
	55:  {"SECURITY_DISABLED", false},                     // 54
	56:  {"OPERATION_NOT_ATTEMPTED", false},               // 55
	57:  {"KAFKA_STORAGE_ERROR", true},                    // 56
	58:  {"LOG_DIR_NOT_FOUND", false},                     // 57
	59:  {"SASL_AUTHENTICATION_FAILED", false},            // 58
	60:  {"UNKNOWN_PRODUCER_ID", false},                   // 59
	61:  {"REASSIGNMENT_IN_PROGRESS", false},              // 60
	62:  {"DELEGATION_TOKEN_AUTH_DISABLED", false},        // 61
	63:  {"DELEGATION_TOKEN_NOT_FOUND", false},            // 62
	64:  {"DELEGATION_TOKEN_OWNER_MISMATCH", false},       // 63
	65:  {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false},  // 64
	66:  {"DELEGATION_TOKEN_AUTHORIZATION_FAILED", false}, // 65
	67:  {"DELEGATION_TOKEN_EXPIRED", false},              // 66
	68:  {"INVALID_PRINCIPAL_TYPE", false},                // 67
	69:  {"NON_EMPTY_GROUP", false},                       // 68
	70:  {"GROUP_ID_NOT_FOUND", false},                    // 69
	71:  {"FETCH_SESSION_ID_NOT_FOUND", true},             // 70
	72:  {"INVALID_FETCH_SESSION_EPOCH", true},            // 71
	73:  {"LISTENER_NOT_FOUND", true},                     // 72
	74:  {"TOPIC_DELETION_DISABLED", false},               // 73
	75:  {"FENCED_LEADER_EPOCH", true},                    // 74
	76:  {"UNKNOWN_LEADER_EPOCH", true},                   // 75
	77:  {"UNSUPPORTED_COMPRESSION_TYPE", false},          // 76
	78:  {"STALE_BROKER_EPOCH", false},                    // 77
	79:  {"OFFSET_NOT_AVAILABLE", true},                   // 78
	80:  {"MEMBER_ID_REQUIRED", false},                    // 79
	81:  {"PREFERRED_LEADER_NOT_AVAILABLE", true},         // 80
	82:  {"GROUP_MAX_SIZE_REACHED", false},                // 81
	83:  {"FENCED_INSTANCE_ID", false},                    // 82
	84:  {"ELIGIBLE_LEADERS_NOT_AVAILABLE", true},         // 83
	85:  {"ELECTION_NOT_NEEDED", false},                   // 84
	86:  {"NO_REASSIGNMENT_IN_PROGRESS", false},           // 85
	87:  {"GROUP_SUBSCRIBED_TO_TOPIC", false},             // 86
	88:  {"INVALID_RECORD", false},                        // 87
	89:  {"UNSTABLE_OFFSET_COMMIT", true},                 // 88
	90:  {"THROTTLING_QUOTA_EXCEEDED", true},              // 89
	91:  {"PRODUCER_FENCED", false},                       // 90
	92:  {"RESOURCE_NOT_FOUND", false},                    // 91
	93:  {"DUPLICATE_RESOURCE", false},                    // 92
	94:  {"UNACCEPTABLE_CREDENTIAL", false},               // 93
	95:  {"INCONSISTENT_VOTER_SET", false},                // 94
	96:  {"INVALID_UPDATE_VERSION", false},                // 95
	97:  {"FEATURE_UPDATE_FAILED", false},                 // 96
	98:  {"PRINCIPAL_DESERIALIZATION_FAILURE", false},     // 97
	99:  {"SNAPSHOT_NOT_FOUND", false},                    // 98
	100: {"POSITION_OUT_OF_RANGE", false},                 // 99
	101: {"UNKNOWN_TOPIC_ID", true},                       // 100
	102: {"DUPLICATE_BROKER_REGISTRATION", false},         // 101
	103: {"BROKER_ID_NOT_REGISTERED", false},              // 102
	104: {"INCONSISTENT_TOPIC_ID", true},                  // 103
	105: {"INCONSISTENT_CLUSTER_ID", false},               // 104
	106: {"TRANSACTIONAL_ID_NOT_FOUND", false},            // 105
	107: {"FETCH_SESSION_TOPIC_ID_ERROR", true},           // 106
	108: {"INELIGIBLE_REPLICA", false},                    // 107
	109: {"NEW_LEADER_ELECTED", false},                    // 108
	110: {"OFFSET_MOVED_TO_TIERED_STORAGE", false},        // 109
	111: {"FENCED_MEMBER_EPOCH", false},                   // 110
	112: {"UNRELEASED_INSTANCE_ID", false},                // 111
	113: {"UNSUPPORTED_ASSIGNOR", false},                  // 112
	114: {"STALE_MEMBER_EPOCH", false},                    // 113
	115: {"MISMATCHED_ENDPOINT_TYPE", false},              // 114
	116: {"UNSUPPORTED_ENDPOINT_TYPE", false},             // 115
	117: {"UNKNOWN_CONTROLLER_ID", false},                 // 116
	118: {"UNKNOWN_SUBSCRIPTION_ID", false},               // 117
	119: {"TELEMETRY_TOO_LARGE", false},                   // 118
	120: {"INVALID_REGISTRATION", false},                  // 119
	121: {"TRANSACTION_ABORTABLE", false},                 // 120
}
