# certificates.sh FOLDER: keys and certificates under the names that the drivers' tests read.
set -euo pipefail
mkdir -p "$1/fixtures"
cd "$1"
[[ -f fixtures/rsa_private.key ]] && exit 0
for authority in ca other-ca; do
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -keyout $authority-key.pem -out $authority.crt -subj /CN=$authority 2>/dev/null
done
signed() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1-key.pem" -out "$1.csr" -subj "/CN=$1" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2-key.pem" -CAcreateserial -days 3650 -out "$1.crt" \
    -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") 2>/dev/null
}
signed server ca
signed client ca
signed other-server other-ca
openssl pkcs8 -topk8 -nocrypt -in client-key.pem -out client-key.pkcs8.pem
openssl pkcs8 -topk8 -nocrypt -in client-key.pem -outform DER -out client-key.pkcs8.der
openssl rsa -traditional -in client-key.pem -out pkcs1.pem 2>/dev/null
mv pkcs1.pem client-key.pem
# A certificate of X.509's first version has no extensions.
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca-key.pem -CAcreateserial -days 3650 -outform DER -out fixtures/x509-v1.der 2>/dev/null
openssl rsa -in server-key.pem -pubout -out fixtures/server-public-key.pem 2>/dev/null
cp server.crt fixtures/cert.pem
cp server-key.pem fixtures/rsa_private.key
