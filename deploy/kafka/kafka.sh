#!/usr/bin/env bash
# Apache Kafka in KRaft mode on this machine, from its jars, for tests.
#
#   kafka.sh up [1|3]     start that many brokers (default 1), fresh
#   kafka.sh down         stop them
#   kafka.sh stop N       stop broker N; kill N: at once; start N: again
#   kafka.sh tool CLASS … run one of Kafka's own tools, such as
#                         org.apache.kafka.tools.consumer.group.ConsumerGroupCommand
#
# KAFKA_DIR keeps data and logs elsewhere than in .cache/kafka, KAFKA_PORTS is the
# first two digits of every port (default 29), KAFKA_HEAP a broker's heap (512m):
# clusters that differ in both run side by side. KAFKA_LISTENERS adds listeners,
# each NAME:PROTOCOL:PORT:ADVERTISED, a space between; the broker's number ends
# both ports: SLOT1:PLAINTEXT:2841:2851 listens on 2841N and says it is on 2851N.
#
# Broker N listens on 127.0.0.1: 2909N plain, 2919N TLS, 2929N SASL (PLAIN,
# SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER unsecured; user app, password
# app-secret), 2949N the same SASL over TLS. Certificates are in .cache/kafka/tls;
# TLS takes a client's certificate of the authority and asks for none. A resource
# with ACLs is for those that they name, and for whoever comes without SASL;
# the others are for everyone. Needs Java 17 and Maven.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/kafka
home=${KAFKA_DIR:-$cache}
lib=$cache/lib
ports=${KAFKA_PORTS:-29}
heap=${KAFKA_HEAP:-512m}
KAFKA_LISTENERS=${KAFKA_LISTENERS:-}
quiet=(-Dorg.slf4j.simpleLogger.defaultLogLevel=error)

fetch() {
  [ -e "$lib/.complete" ] && return
  mkdir -p "$lib"
  echo "fetching Kafka's jars" >&2
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$lib" >&2
  touch "$lib/.complete"
}

java_tool() { java "${quiet[@]}" -Xmx256m -cp "$lib/*" "$@"; }

# certificates: an authority of our own, and a key of the brokers.
certificates() {
  local d=$cache/tls
  [ -e "$d/broker.p12" ] && return
  mkdir -p "$d"
  keytool -genkeypair -alias ca -keyalg EC -groupname secp256r1 -dname CN=streamgauge-test-ca -ext bc:c -validity 3650 \
    -storetype PKCS12 -keystore "$d/ca.p12" -storepass changeit
  keytool -exportcert -rfc -alias ca -keystore "$d/ca.p12" -storepass changeit -file "$d/ca.pem"
  keytool -genkeypair -alias broker -keyalg EC -groupname secp256r1 -dname CN=localhost -validity 3650 \
    -storetype PKCS12 -keystore "$d/broker.p12" -storepass changeit
  keytool -certreq -alias broker -keystore "$d/broker.p12" -storepass changeit |
    keytool -gencert -alias ca -keystore "$d/ca.p12" -storepass changeit -validity 3650 -ext san=dns:localhost,ip:127.0.0.1 -rfc > "$d/broker.pem"
  cat "$d/ca.pem" >> "$d/broker.pem"
  keytool -importcert -noprompt -alias broker -keystore "$d/broker.p12" -storepass changeit -trustcacerts -file "$d/broker.pem"
}

config() { # N brokers
  local n=$1 count=$2 voters="" i
  local listen="" advertise="" protocols="" tls="tls both" sasl="sasl both" name protocol port advertised
  while IFS=: read -r name protocol port advertised; do
    [ -n "$name" ] || continue
    listen+=",$name://127.0.0.1:$port$n" advertise+=",$name://127.0.0.1:$advertised$n" protocols+=",$name:$protocol"
    case $protocol in *SSL) tls+=" ${name,,}" ;; esac
    case $protocol in SASL*) sasl+=" ${name,,}" ;; esac
  done <<< "${KAFKA_LISTENERS// /$'\n'}"
  for i in $(seq 1 "$count"); do voters+="${voters:+,}$i@127.0.0.1:${ports}39$i"; done
  cat <<EOF
process.roles=broker,controller
node.id=$n
controller.quorum.voters=$voters
listeners=PLAINTEXT://127.0.0.1:${ports}09$n,TLS://127.0.0.1:${ports}19$n,SASL://127.0.0.1:${ports}29$n,CONTROLLER://127.0.0.1:${ports}39$n,BOTH://127.0.0.1:${ports}49$n$listen
advertised.listeners=PLAINTEXT://127.0.0.1:${ports}09$n,TLS://127.0.0.1:${ports}19$n,SASL://127.0.0.1:${ports}29$n,BOTH://127.0.0.1:${ports}49$n$advertise
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,BOTH:SASL_SSL$protocols
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=$home/data/$n
broker.rack=rack-$n
default.replication.factor=$count
min.insync.replicas=$((count > 1 ? 2 : 1))
offsets.topic.replication.factor=$count
transaction.state.log.replication.factor=$count
transaction.state.log.min.isr=$((count > 1 ? 2 : 1))
offsets.topic.num.partitions=6
transaction.state.log.num.partitions=6
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=33554432
log.retention.check.interval.ms=5000
$(for l in $tls; do cat <<TLS
listener.name.$l.ssl.keystore.type=PKCS12
listener.name.$l.ssl.keystore.location=$cache/tls/broker.p12
listener.name.$l.ssl.keystore.password=changeit
listener.name.$l.ssl.truststore.type=PEM
listener.name.$l.ssl.truststore.location=$cache/tls/ca.pem
listener.name.$l.ssl.client.auth=requested
listener.name.$l.ssl.principal.mapping.rules=RULE:.*/ANONYMOUS/
TLS
done)
$(for l in $sasl; do cat <<SASL
listener.name.$l.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.$l.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_app="app-secret";
listener.name.$l.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.$l.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.$l.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
SASL
done)
EOF
}

start() { # N
  local n=$1
  java "${quiet[@]}" "-Xmx$heap" -Xms128m -cp "$lib/*" kafka.Kafka "$home/$n.properties" >> "$home/$n.log" 2>&1 &
  echo $! > "$home/$n.pid"
}

await() { # N: until it answers
  local n=$1 i
  for i in $(seq 1 240); do
    if ! runs "$(cat "$home/$n.pid")"; then
      echo "broker $n ended; see $home/$n.log" >&2
      tail -5 "$home/$n.log" >&2
      return 1
    fi
    if (exec 3<> "/dev/tcp/127.0.0.1/${ports}09$n") 2>/dev/null; then return 0; fi
    sleep 0.25
  done
  echo "broker $n does not answer; see $home/$n.log" >&2
  return 1
}

# runs says whether a process does: one that has ended and that nobody has waited
# for yet does not.
runs() { # pid
  kill -0 "$1" 2>/dev/null && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

end() { # N signal
  local pid=$home/$1.pid i
  [ -e "$pid" ] || return 0
  kill "-$2" "$(cat "$pid")" 2>/dev/null || true
  for i in $(seq 1 120); do
    runs "$(cat "$pid")" || break
    sleep 0.25
    [ "$i" -lt 100 ] || kill -KILL "$(cat "$pid")" 2>/dev/null || true
  done
  rm -f "$pid"
}

case ${1:-} in
up)
  count=${2:-1}
  [ "$count" = 1 ] || [ "$count" = 3 ] || { echo "BROKERS is 1 or 3, not $count" >&2; exit 1; }
  fetch
  certificates
  for n in 1 2 3; do end $n TERM; done
  mkdir -p "$home"
  rm -rf "$home/data" "$home"/*.log
  id=$(java_tool kafka.tools.StorageTool random-uuid 2>/dev/null | tail -1)
  for n in $(seq 1 "$count"); do
    config "$n" "$count" > "$home/$n.properties"
    java_tool kafka.tools.StorageTool format -t "$id" -c "$home/$n.properties" \
      --add-scram 'SCRAM-SHA-256=[name=app,password=app-secret]' --add-scram 'SCRAM-SHA-512=[name=app,password=app-secret]' > /dev/null
    start "$n"
  done
  for n in $(seq 1 "$count"); do await "$n"; done
  echo "Kafka runs: $(for n in $(seq 1 "$count"); do printf '127.0.0.1:%s09%s ' "$ports" "$n"; done)"
  ;;
down) for n in 1 2 3; do end $n TERM; done ;;
stop) end "$2" TERM ;;
kill) end "$2" KILL ;;
start) start "$2" && await "$2" ;;
tool) shift && fetch && java_tool "$@" ;;
*) sed -n '2,/^set /{/^#/p}' "$0"; exit 1 ;;
esac
