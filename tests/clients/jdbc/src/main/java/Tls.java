import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.*;
import java.security.*;
import java.security.cert.*;
import java.security.spec.PKCS8EncodedKeySpec;
import java.sql.*;
import java.util.Base64;

/** TLS by MySQL Connector/J. */
public class Tls {
    static final String PEM = System.getenv("DB_CERTIFICATES");
    static final char[] PASSWORD = "changeit".toCharArray();

    static java.security.cert.Certificate certificate(String name) throws Exception {
        try (FileInputStream file = new FileInputStream(PEM + "/" + name + ".pem")) {
            return CertificateFactory.getInstance("X.509").generateCertificate(file);
        }
    }

    static String store(Path folder, String name, KeyStore store) throws Exception {
        Path path = folder.resolve(name);
        try (FileOutputStream file = new FileOutputStream(path.toFile())) {
            store.store(file, PASSWORD);
        }
        return path.toUri().toString();
    }

    static KeyStore empty() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    static String trusting(Path folder, String authority) throws Exception {
        KeyStore store = empty();
        store.setCertificateEntry("ca", certificate(authority));
        return "&trustCertificateKeyStoreUrl=" + store(folder, authority, store) + "&trustCertificateKeyStorePassword=changeit";
    }

    static String clientKey(Path folder) throws Exception {
        String text = Files.readString(Path.of(PEM, "client-key.pem")).replaceAll("-----[^-]+-----|\\s", "");
        PrivateKey key = KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
        KeyStore store = empty();
        store.setKeyEntry("client", key, PASSWORD, new java.security.cert.Certificate[] {certificate("client-cert")});
        return "&clientCertificateKeyStoreUrl=" + store(folder, "client", store) + "&clientCertificateKeyStorePassword=changeit";
    }

    static Connection connect(String user, String mode, String more) throws SQLException {
        String url = "jdbc:mysql://localhost:" + System.getenv("DB_PORT") + "/?sslMode=" + mode + "&allowPublicKeyRetrieval=true"
            + "&maxAllowedPacket=67108864" + more;
        return DriverManager.getConnection(url, user, "right");
    }

    static void refused(String user, String mode, String more) {
        try {
            connect(user, mode, more).close();
        } catch (SQLException expected) {
            return;
        }
        throw new AssertionError("nothing refused " + user + " with " + mode);
    }

    static void works(String user, String mode, String more) throws SQLException {
        try (Connection db = connect(user, mode, more); Statement s = db.createStatement()) {
            try (ResultSet r = s.executeQuery("SHOW STATUS LIKE 'Ssl_cipher'")) {
                r.next();
                if (!r.getString(2).startsWith("TLS_AES_")) throw new AssertionError("not encrypted: " + mode);
            }
            try (ResultSet r = s.executeQuery("SELECT REPEAT('x', 3000000), LENGTH('" + "y".repeat(3000000) + "') AS n")) {
                r.next();
                if (r.getString(1).length() != 3000000 || r.getInt(2) != 3000000) throw new AssertionError("bytes are missing");
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("tls");
        String ca = trusting(folder, "ca");
        String other = trusting(folder, "other");
        String key = clientKey(folder);
        refused("encrypted", "DISABLED", "");
        works("encrypted", "PREFERRED", "");
        works("encrypted", "REQUIRED", "");
        works("encrypted", "REQUIRED", "&useCompression=true");
        works("encrypted", "VERIFY_CA", ca);
        works("encrypted", "VERIFY_IDENTITY", ca);
        refused("encrypted", "VERIFY_CA", other);
        for (String user : new String[] {"certified", "named"}) {
            refused(user, "VERIFY_CA", ca);
            works(user, "VERIFY_IDENTITY", ca + key);
        }
        System.out.println("passed");
    }
}
