package wallaby;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.WriteFiles;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Lets TaskManagers run sub-plans of Spark's own plans; Spark's tasks then read their rows.
 *
 * A planner strategy passes every plan that Spark is about to plan to Python, once and as a whole. Python returns the
 * sub-plans that run in the TaskManagers. The nodes in KeptPlans.java replace them; KeptRdds.java says how long their rows
 * are kept.
 *
 * Spark compiles these files in the driver with Janino; see PlanWriter.java for what that means.
 */
public class SparkAbove extends SparkStrategy {
    private static final String SETTINGS = "spark.wallaby.";
    private static final String ENABLED = "spark.wallaby.enabled";
    private static final String BELOW = "spark.wallaby.below";
    /** Plans over tables with fewer bytes are not passed to Python. */
    private static final double LITTLE_BYTES = 4 << 20;
    private static final String CONFIGURATION = "WALLABY_CONFIGURATION";
    /** So many different settings are remembered as valid. */
    private static final int VALID_MAX = 100;

    private final KeptPlans plans;
    private final KeptWrites writes;
    /** Returns the sub-plans of a plan that run in the TaskManagers. */
    private BiFunction offer;
    /** Returns why a command is refused under some settings; null if it is not. */
    private Function doubt;
    /** Settings under which nothing is refused, or of which a warning was given. */
    private final Set valid = Collections.synchronizedSet(new HashSet());
    private final TreeNodeTag seen = new TreeNodeTag("wallaby.seen");
    private final TreeNodeTag taken = new TreeNodeTag("wallaby.taken");
    private final KeptPlans.Strategy kept = new KeptPlans.Strategy();
    /** The enabled sessions, and those that were disabled although others are enabled. */
    private final Set installed = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));
    private final Set excepted = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));
    private boolean inNewSessions = false;

    public SparkAbove(KeptPlans plans, KeptWrites writes) {
        this.plans = plans;
        this.writes = writes;
    }

    public void connect(BiFunction offer, Function doubt) {
        this.offer = offer;
        this.doubt = doubt;
    }

    /** From now on, examine the plans of this session and of sessions that are copied from it. */
    public void install(SparkSession session) {
        installed.add(session);
        excepted.remove(session);
        install(session, this);
    }

    /** Let this session plan DataFrames over kept rows; its other plans are not examined. */
    public void installForKept(SparkSession session) {
        install(session, kept);
    }

    /** Examine the plans of threads that ask for it; other plans only if the session is enabled. */
    public void installForced(SparkSession session) {
        if (!installed.contains(session)) {
            excepted.add(session);
        }
        install(session, this);
    }

    private static void install(SparkSession session, SparkStrategy strategy) {
        Seq there = session.experimental().extraStrategies();
        if (!there.contains(strategy)) {
            session.experimental().extraStrategies_$eq((Seq) there.prepended(strategy));
        }
    }

    /** Give new sessions of the application the strategy too. */
    public synchronized void installInNewSessions(SparkSession session) {
        if (!inNewSessions) {
            inNewSessions = true;
            session.extensions().injectPlannerStrategy(new Build(this));
        }
    }

    /** Stop examining the plans of this session, and stop altogether once no session is left. */
    public void uninstall(SparkSession session) {
        installed.remove(session);
        excepted.add(session);
        session.experimental().extraStrategies_$eq(
            (Seq) session.experimental().extraStrategies().filterNot(new IsSame(this)));
    }

    // --- planning ------------------------------------------------------------------------------------

    public Seq apply(LogicalPlan plan) {
        Seq none = (Seq) Nil$.MODULE$;
        if (plan instanceof KeptPlans.Relation) {
            return kept.apply(plan);
        }
        if (plans.rdds.isClosed()) {
            return none;
        }
        Seq there = node(plan);
        if (there != null) {
            return there;
        }
        if (plan.getTagValue(seen).isDefined()) {
            SparkPlan writer = plan instanceof InsertIntoHadoopFsRelationCommand ? command(plan) : writer(plan);
            if (writer == null && plan instanceof WriteFiles) {
                writes.refuseKey();
            }
            return writer == null ? none : KeptPlans.one(writer);
        }
        mark(plan);
        if (plan instanceof WriteFiles && KeptWrites.written(plan) == null) {
            writes.refuseKey();
        }
        if (isBegun(plan) || !isEnabled()) {
            return none;
        }
        requireValid(plan);
        if (!isOffered(plan) || !isWanted() || !readsMuch(plan)) {
            return none;
        }
        String answer = (String) Calls.apply(
            plans.rdds.context(), offer, plan, facts((SparkSession) SparkSession.active(), plan));
        String[] chosen = answer == null ? new String[0] : answer.split("\0", -1);
        List<PartRun> runs = new ArrayList<PartRun>();
        for (int at = 0; at < chosen.length; at += 3) {
            LogicalPlan part = part(plan, chosen[at]);
            PartRun run = equal(runs, part);
            if (run == null) {
                run = new PartRun(plans, part, chosen[at + 1], chosen[at + 2]);
                runs.add(run);
            } else {
                plans.rdds.drop(chosen[at + 1]);
            }
            part.setTagValue(taken, run);
        }
        there = node(plan);
        SparkPlan command = there == null ? command(plan) : null;
        return there != null ? there : command != null ? KeptPlans.one(command) : none;
    }

    /**
     * The node that replaces a plan; null if Spark runs it. Spark plans a limit directly below the root of a query together
     * with the root, and does not ask for it separately.
     */
    private Seq node(LogicalPlan plan) {
        LogicalPlan top = plan instanceof ReturnAnswer ? (LogicalPlan) plan.children().head() : plan;
        Option known = top.getTagValue(taken);
        if (!known.isDefined()) {
            return null;
        }
        PartRun run = (PartRun) known.get();
        return run.plan.sameResult(top) ? KeptPlans.one(new KeptPlans.Exec(run, top.output())) : null;
    }

    /**
     * Is a plan too small to ask Python? Whatever is done with so few rows takes less time than starting and ending a query.
     * With `always`, Python is asked anyway.
     */
    private boolean readsMuch(LogicalPlan plan) {
        SparkSession session = (SparkSession) SparkSession.active();
        return isForced() || "always".equalsIgnoreCase(session.sessionState().conf().getConfString(BELOW, "auto").trim())
            || bytesBelow(plan) >= LITTLE_BYTES;
    }

    /** The same for a part of a plan. */
    public boolean readsMuch(LogicalPlan plan, String path) {
        return readsMuch(part(plan, path));
    }

    /** The bytes of a plan's tables, as far as Spark knows; for a cross join, of all pairs of rows. */
    private static double bytesBelow(LogicalPlan plan) {
        if (plan.children().isEmpty()) {
            return plan.stats().sizeInBytes().toDouble();
        }
        boolean pairs = plan instanceof Join && ExtractEquiJoinKeys$.MODULE$.unapply((Join) plan).isEmpty();
        double bytes = pairs ? 1 : 0;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            double below = bytesBelow((LogicalPlan) children.next());
            bytes = pairs ? bytes * below : bytes + below;
        }
        return bytes;
    }

    /** The node that writes the rows of a part, if they are all rows of a write; otherwise null. */
    private SparkPlan writer(LogicalPlan plan) {
        LogicalPlan written = KeptWrites.written(plan);
        Option known = written == null ? null : written.getTagValue(taken);
        if (known == null || known.isEmpty() || !((PartRun) known.get()).plan.sameResult(written)) {
            return null;
        }
        SparkPlan child = planLater((LogicalPlan) ((WriteFiles) plan).child());
        return writes.writer((PartRun) known.get(), (WriteFiles) plan, written, child);
    }

    /** A command of Spark's that writes the rows of a part, if the part is taken; else null. */
    private SparkPlan command(LogicalPlan plan) {
        if (!(plan instanceof InsertIntoHadoopFsRelationCommand)) {
            return null;
        }
        InsertIntoHadoopFsRelationCommand command = (InsertIntoHadoopFsRelationCommand) plan;
        SparkPlan writer = writer(command.query());
        return writer == null ? null : writes.command(command, writer);
    }

    /** The way to the part of a plan whose rows are written here if it is taken; null if there is none. */
    public String writtenPath(LogicalPlan plan) {
        StringBuilder path = new StringBuilder();
        while (plan.children().size() == 1) {
            LogicalPlan written = KeptWrites.written(plan);
            plan = (LogicalPlan) plan.children().head();
            path.append(path.length() == 0 ? "0" : ".0");
            if (written != null) {
                return written == plan ? path.toString() : path.append(".0").toString();
            }
        }
        return null;
    }

    /**
     * What Python has to know of a plan, in one text: the way to the part that is written, or a dash; whether all of it is
     * to run here; keys and values of the session's settings. Between them are zero bytes.
     */
    public String facts(SparkSession session, LogicalPlan plan) {
        String written = writtenPath(plan);
        StringBuilder said = new StringBuilder(written == null ? "-" : written);
        said.append('\0').append(isForced() ? "forced" : "free");
        return said.append(entries(session)).toString();
    }

    private static String entries(SparkSession session) {
        StringBuilder said = new StringBuilder();
        scala.collection.Iterator entries = session.sessionState().conf().getAllConfs().iterator();
        while (entries.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) entries.next();
            if (((String) entry._1()).startsWith(SETTINGS)) {
                said.append('\0').append(entry._1()).append('\0').append(entry._2());
            }
        }
        return said.toString();
    }

    /**
     * Refuse a write under settings that make no sense, as actions do that bring rows to the driver; Python warns of other
     * plans. Spark remembers the failure of a plan with its DataFrame, which would fail for ever; a command is planned anew
     * each time. A command such as RESET, which may set them right, is spared.
     */
    private void requireValid(LogicalPlan plan) {
        LogicalPlan top = plan instanceof ReturnAnswer ? (LogicalPlan) plan.children().head() : plan;
        if (top instanceof LeafRunnableCommand || top instanceof CommandResult) {
            return;
        }
        String asked = (top instanceof Command ? "command" : "query") + entries((SparkSession) SparkSession.active());
        if (valid.contains(asked)) {
            return;
        }
        String wrong = (String) Calls.apply(plans.rdds.context(), doubt, asked);
        if (wrong != null) {
            throw new KeptPlans.WallabyException(CONFIGURATION, wrong, null);
        }
        if (valid.size() >= VALID_MAX) {
            valid.clear();
        }
        valid.add(asked);
    }

    private boolean isEnabled() {
        SparkSession session = (SparkSession) SparkSession.active();
        String bypass = plans.rdds.context().getLocalProperty(KeptPlans.BYPASS);
        return isForced() || !installed.isEmpty() && !excepted.contains(session) && !"true".equals(bypass)
            && !"false".equalsIgnoreCase(session.sessionState().conf().getConfString(ENABLED, "true").trim());
    }

    private boolean isWanted() {
        SparkSession session = (SparkSession) SparkSession.active();
        return isForced()
            || !"never".equalsIgnoreCase(session.sessionState().conf().getConfString(BELOW, "auto").trim());
    }

    /** Should TaskManagers run all they can of this thread's plans, whatever the session says? */
    public boolean isForced() {
        return "never".equals(plans.rdds.context().getLocalProperty(KeptPlans.BYPASS));
    }

    /** Can a part of the plan pay? Not if it only passes rows on, and writes no file. */
    private boolean isOffered(LogicalPlan plan) {
        return !plan.isStreaming() && (hasWork(plan) || writtenPath(plan) != null);
    }

    private static boolean hasWork(LogicalPlan plan) {
        if (plan instanceof Aggregate || plan instanceof Join || plan instanceof Sort || plan instanceof Window) {
            return true;
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (hasWork((LogicalPlan) children.next())) {
                return true;
            }
        }
        return false;
    }

    /** Is this the rest of an adaptive plan? The whole plan was examined before it started. */
    private static boolean isBegun(LogicalPlan plan) {
        if (plan instanceof LogicalQueryStage) {
            return true;
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (isBegun((LogicalPlan) children.next())) {
                return true;
            }
        }
        return false;
    }

    private void mark(LogicalPlan plan) {
        plan.setTagValue(seen, Boolean.TRUE);
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            mark((LogicalPlan) children.next());
        }
    }

    private static LogicalPlan part(LogicalPlan plan, String path) {
        String[] steps = path.isEmpty() ? new String[0] : path.split("\\.");
        for (int i = 0; i < steps.length; i++) {
            plan = (LogicalPlan) plan.children().apply(Integer.parseInt(steps[i]));
        }
        return plan;
    }

    private static PartRun equal(List<PartRun> runs, LogicalPlan part) {
        for (int at = 0; at < runs.size(); at++) {
            PartRun run = (PartRun) runs.get(at);
            if (run.plan.sameResult(part)) {
                return run;
            }
        }
        return null;
    }

    /** A part of a plan as a query of its own, which is never offered again. */
    public Object query(LogicalPlan plan, String path) {
        return Dataset.ofRows((SparkSession) SparkSession.active(), (LogicalPlan) part(plan, path).clone());
    }

    /**
     * The same query in a session of its own, without adaptive execution. A part is executed on a thread of Spark's pool for
     * adaptive stages; a query that waits there for another thread of that pool may wait for ever.
     */
    public Object unadapted(Dataset query) {
        SparkSession session = query.sparkSession().cloneSession();
        session.conf().set("spark.sql.adaptive.enabled", "false");
        return Dataset.ofRows(session, (LogicalPlan) query.queryExecution().logical().clone());
    }

    /** A DataFrame over kept rows, with the schema of a query that is started by its id. */
    public Object dataframe(SparkSession session, Dataset query, String id, String text) {
        PartRun run = new PartRun(plans, query.queryExecution().optimizedPlan(), id, text);
        run.stays = true;
        return Dataset.ofRows(session, new KeptPlans.Relation(run, KeptPlans.fresh(query.queryExecution().analyzed().output())));
    }

    /** Gives new sessions the strategy. */
    public static class Build extends AbstractFunction1 {
        private final SparkAbove above;

        public Build(SparkAbove above) {
            this.above = above;
        }

        public Object apply(Object session) {
            return above;
        }
    }

    public static class IsSame extends AbstractFunction1 {
        private final Object what;

        public IsSame(Object what) {
            this.what = what;
        }

        public Object apply(Object other) {
            return Boolean.valueOf(other == what);
        }
    }
}
