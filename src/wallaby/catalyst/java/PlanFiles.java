package wallaby;

import java.net.URI;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructField;

/** The files of a relation: their format, their folders, and how they are reached; or what is against reading them here. */
public class PlanFiles {
    /** The files of a table's snapshot, chosen by a library in Python (`lakes`). */
    private static final String SNAPSHOT = "wallaby.SnapshotFiles";

    /** A relation of files; the filter right above it, or null, may spare some of them. */
    static void fileRelation(StringBuilder out, HadoopFsRelation relation, Filter above, Listings listings) throws Exception {
        out.append("{\"c\":");
        Json.text(out, relation.getClass().getName());
        out.append(",\"format\":");
        Json.text(out, relation.fileFormat().getClass().getName());
        out.append(",\"schema\":");
        Json.text(out, relation.dataSchema().json());
        out.append(",\"partitions\":[");
        StructField[] partitions = relation.partitionSchema().fields();
        for (int i = 0; i < partitions.length; i++) {
            out.append(i == 0 ? "[" : ",[");
            Json.text(out, partitions[i].name());
            out.append(',');
            Json.text(out, partitions[i].dataType().catalogString());
            out.append(']');
        }
        out.append(']');
        out.append(",\"options\":{");
        scala.collection.Iterator options = relation.options().iterator();
        while (options.hasNext()) {
            scala.Tuple2 option = (scala.Tuple2) options.next();
            Json.text(out, option._1().toString());
            out.append(':');
            Json.text(out, String.valueOf(option._2()));
            out.append(options.hasNext() ? "," : "");
        }
        out.append("},\"directories\":[");
        StringBuilder against = new StringBuilder();
        String facts = LakeTables.isDelta(relation) ? deltaFacts(relation, against) : "";
        boolean remote = against.length() == 0 && directories(out, relation, listings.directories(relation, above).iterator(), against);
        out.append(']').append(facts);
        if (SNAPSHOT.equals(relation.location().getClass().getName())) {
            out.append(",\"snapshot\":true");
        }
        out.append(",\"against\":");
        Json.text(out, against.toString());
        out.append(",\"storage\":{");
        if (remote) {
            storage(out, relation.sparkSession().sessionState().newHadoopConf());
        }
        out.append("}}");
    }

    /** How a table of Delta's names the columns of its files; `against` gets what keeps us from reading them. */
    private static String deltaFacts(HadoopFsRelation relation, StringBuilder against) throws Exception {
        StringBuilder out = new StringBuilder(",\"delta\":{\"mapping\":");
        try {
            against.append(LakeTables.against(relation));
            Json.text(out, LakeTables.mapping(relation));
            return out.append(",\"columns\":").append(Json.ascii(LakeTables.columns(relation))).append('}').toString();
        } catch (ReflectiveOperationException unknown) {
            against.append("this version of Delta Lake is not known (").append(unknown).append(')');
            return "";
        }
    }

    /** The files of a scan of Iceberg's, or what is against reading them here. */
    static void icebergScan(StringBuilder out, Object scan) throws Exception {
        String against = "";
        StringBuilder said = new StringBuilder();
        try {
            said.append(",\"name\":");
            Json.text(said, LakeTables.icebergName(scan));
            said.append(",\"schema\":").append(Json.ascii(LakeTables.icebergColumns(scan)));
            said.append(",\"partitioned\":").append(LakeTables.partitionedBy(scan)).append(",\"files\":[");
            Object found = LakeTables.icebergFiles(scan);
            if (found instanceof String) {
                against = (String) found;
            } else {
                icebergFiles(said, (List) found);
            }
            said.append(']');
        } catch (ReflectiveOperationException unknown) {
            against = "this version of Iceberg is not known (" + unknown + ")";
        }
        out.append("{\"c\":");
        Json.text(out, scan.getClass().getName());
        out.append(",\"against\":");
        Json.text(out, against);
        out.append(against.isEmpty() ? said.toString() : "").append('}');
    }

    private static void icebergFiles(StringBuilder out, List files) {
        for (int i = 0; i < files.size(); i++) {
            Object[] file = (Object[]) files.get(i);
            URI uri = new Path((String) file[0]).toUri();
            out.append(i == 0 ? "[" : ",[");
            Json.text(out, uri.getScheme() == null ? "" : uri.getScheme());
            out.append(',');
            Json.text(out, uri.getPath());
            out.append(',').append(file[1]).append(']');
        }
    }

    /** The settings by which files are reached, without Hadoop's own defaults; and the user. */
    static void storage(StringBuilder out, Configuration settings) throws Exception {
        Json.text(out, "user");
        out.append(':');
        Json.text(out, UserGroupInformation.getCurrentUser().getShortUserName());
        java.util.Iterator entries = settings.iterator();
        while (entries.hasNext()) {
            String name = (String) ((Map.Entry) entries.next()).getKey();
            String[] sources = settings.getPropertySources(name);
            boolean usual = sources != null && sources.length == 1 && sources[0].equals("core-default.xml");
            boolean wanted = name.startsWith("fs.s3a.") || name.equals("fs.s3.impl") || name.startsWith("fs.hdfs.") || name.startsWith("dfs.")
                || name.startsWith("hadoop.security.");
            if (wanted && !usual && settings.get(name) != null) {
                out.append(',');
                Json.text(out, name);
                out.append(':');
                Json.text(out, settings.get(name));
            }
        }
    }

    /**
     * Every directory that Spark lists: the values of the partition columns there, and its files. Are some of them on
     * no local disk? `against` gets what keeps us from reading them.
     */
    private static boolean directories(
        StringBuilder out, HadoopFsRelation relation, scala.collection.Iterator directories, StringBuilder against) throws Exception {
        StructField[] partitions = relation.partitionSchema().fields();
        boolean remote = false;
        while (directories.hasNext()) {
            PartitionDirectory directory = (PartitionDirectory) directories.next();
            out.append("[[");
            for (int i = 0; i < partitions.length; i++) {
                out.append(i == 0 ? "" : ",");
                PlanValues.value(out, directory.values().get(i, partitions[i].dataType()));
            }
            out.append("],[");
            remote |= files(out, directory.files().iterator(), against);
            out.append(directories.hasNext() ? "]]," : "]]");
        }
        return remote;
    }

    private static boolean files(StringBuilder out, scala.collection.Iterator files, StringBuilder against) {
        boolean remote = false;
        while (files.hasNext()) {
            FileStatusWithMetadata listed = (FileStatusWithMetadata) files.next();
            FileStatus file = listed.fileStatus();
            if (against.length() == 0 && LakeTables.hasDeletedRows(listed)) {
                against.append("rows of its files are deleted (by a deletion vector)");
            }
            URI uri = file.getPath().toUri();
            remote |= uri.getScheme() != null && !uri.getScheme().equals("file");
            out.append('[');
            Json.text(out, uri.getScheme() == null ? "" : uri.getScheme());
            out.append(',');
            Json.text(out, uri.getPath());
            out.append(',').append(file.getLen()).append(',').append(file.getModificationTime()).append(',');
            Json.text(out, uri.getAuthority() == null ? "" : uri.getAuthority());
            out.append(files.hasNext() ? "]," : "]");
        }
        return remote;
    }
}
