package wallaby;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.collection.immutable.Seq;

/**
 * The files of a query's tables, as they were when it first ran. Spark keeps the physical plan of a DataFrame, and with it
 * these files: collected again, the DataFrame has the rows that it had before, although an INSERT has refreshed the listing
 * that all DataFrames of the table share. Other actions (count, show, write, persist) are new queries, which see the new
 * files.
 *
 * Once a file is gone or was changed, the table is listed anew, because the rows of before cannot be had again.
 */
public class Listings {
    /** By execution: what its relations listed, by their index of files. */
    private static final Map FIRST = new WeakHashMap();

    private final QueryExecution query;
    private final boolean runs;

    /** For a query whose rows are collected, now or perhaps later; null: for another action. */
    Listings(QueryExecution query, boolean runs) {
        this.query = query;
        this.runs = runs;
    }

    /** The directories of a relation, as Spark lists them. */
    Seq directories(HadoopFsRelation relation, Filter above) {
        Seq now = LakeTables.directories(relation, above);
        if (query == null || LakeTables.isDelta(relation)) {
            return now;
        }
        synchronized (FIRST) {
            Map listed = (Map) FIRST.get(query);
            Seq before = listed == null ? null : (Seq) listed.get(relation.location());
            if (before != null && (before == now || hasAll(now, before))) {
                return before;
            }
            if (runs) {
                if (listed == null) {
                    listed = new IdentityHashMap();
                    FIRST.put(query, listed);
                }
                listed.put(relation.location(), now);
            }
            return now;
        }
    }

    private static boolean hasAll(Seq now, Seq before) {
        Map files = new HashMap();
        scala.collection.Iterator directories = now.iterator();
        while (directories.hasNext()) {
            scala.collection.Iterator found = ((PartitionDirectory) directories.next()).files().iterator();
            while (found.hasNext()) {
                FileStatus file = ((FileStatusWithMetadata) found.next()).fileStatus();
                files.put(file.getPath(), file);
            }
        }
        directories = before.iterator();
        while (directories.hasNext()) {
            scala.collection.Iterator found = ((PartitionDirectory) directories.next()).files().iterator();
            while (found.hasNext()) {
                FileStatus old = ((FileStatusWithMetadata) found.next()).fileStatus();
                FileStatus file = (FileStatus) files.get(old.getPath());
                if (file == null || file.getLen() != old.getLen() || file.getModificationTime() != old.getModificationTime()) {
                    return false;
                }
            }
        }
        return true;
    }
}
